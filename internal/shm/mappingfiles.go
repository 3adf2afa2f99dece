package shm

import (
	"errors"
	"fmt"
	"os"
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
		errs = append(errs, fmt.Errorf("%s: another file now", path), f.Close())
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
	fd, err := Open(func() (int, error) { return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	look := os.NewFile(uintptr(fd), path)
	defer look.Close() //nolint:errcheck // only looked at
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
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
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
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
	addr, err := unix.MmapPtr(int(f.Fd()), 0, nil, 1, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return false
	}
	own, ok, err := t.at(uintptr(addr))
	return errors.Join(err, unix.MunmapPtr(addr, 1)) == nil && ok && own.file == m.file
}

// ownDescriptor finds a descriptor of this process that is open on a file. Who maps a file often
// keeps it open: Python's mmap and multiprocessing do.
func ownDescriptor(id fileID) (fd int, ok bool) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, false
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Dev == id.dev && st.Ino == id.ino {
			return fd, true
		}
	}
	return 0, false
}
