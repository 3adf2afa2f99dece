//go:build linux

package shm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Open opens, for reading, the very file that m is mapped from: by its path, or, when the path
// is gone or leads elsewhere, through a descriptor of this process, or through the mapping itself,
// which takes a privilege.
func (t *Mappings) Open(m Mapped) (*os.File, error) {
	var errs []error
	try := func(path string) *os.File {
		f, err := openRegular(path)
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		if t.same(f, m) {
			return f
		}
		errs = append(errs, joined(fmt.Errorf("%s: another file now", path), f))
		return nil
	}
	if strings.HasPrefix(m.Path, "/") && !strings.HasSuffix(m.Path, " (deleted)") {
		if f := try(m.Path); f != nil {
			return f, nil
		}
	}
	if fd, ok := ownDescriptor(m.file); ok {
		if f := try("/proc/self/fd/" + strconv.Itoa(fd)); f != nil {
			return f, nil
		}
	}
	if f := try(fmt.Sprintf("/proc/self/map_files/%x-%x", m.first, m.firstEnd)); f != nil {
		return f, nil
	}
	return nil, errors.Join(errs...)
}

// ErrNotRegular says that a mapping is of a device, or of something else that is no regular file.
var ErrNotRegular = errors.New("not a regular file")

// openRegular looks before it opens: opening a device or a pipe would have effects.
func openRegular(path string) (*os.File, error) {
	look, err := OpenPath(path, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	defer func() { _ = Close(look) }() // only looked at
	var st unix.Stat_t
	switch err := control(look, func(fd int) error { return unix.Fstat(fd, &st) }); {
	case err != nil:
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, &os.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	return ReadOnly(look)
}

// same reports whether m is a mapping of f.
func (t *Mappings) same(f *os.File, m Mapped) bool {
	var st unix.Stat_t
	if err := control(f, func(fd int) error { return unix.Fstat(fd, &st) }); err != nil {
		return false
	}
	if st.Dev == m.file.dev && st.Ino == m.file.ino {
		return true
	}
	// Some file systems (btrfs, overlayfs) give stat other numbers than the table of mappings.
	// So map the file, and look what the table says of it.
	if st.Size == 0 {
		return false
	}
	probe, err := Map(f, 1, false)
	if err != nil {
		return false
	}
	own, ok, err := t.at(probe.Addr())
	return errors.Join(err, probe.Close()) == nil && ok && own.file == m.file
}

// ownDescriptor finds a descriptor of this process that is open on a file. Who maps a file often
// keeps it open: Python's mmap and multiprocessing do.
func ownDescriptor(id fileID) (fd int, ok bool) {
	const table = "/proc/self/fd"
	var entries []os.DirEntry
	var err error
	Apart(func() { entries, err = os.ReadDir(table) })
	if err != nil {
		return 0, false
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		var st unix.Stat_t
		Apart(func() { err = unix.Stat(filepath.Join(table, e.Name()), &st) })
		if err == nil && st.Dev == id.dev && st.Ino == id.ino {
			return fd, true
		}
	}
	return 0, false
}
