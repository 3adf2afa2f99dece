package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// place is a directory that may hold unpacked files, or says why it cannot.
type place struct {
	dir string
	err error
}

// places lists where files are unpacked, the best place first.
func places() []place {
	cache, err := os.UserCacheDir()
	all := []place{{filepath.Join(cache, "ndbridge"), err}}
	if run := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		all = append(all, place{dir: filepath.Join(run, "ndbridge")})
	}
	// Others may have a directory of one name there.
	return append(all, place{dir: filepath.Join(os.TempDir(), "ndbridge-"+strconv.Itoa(os.Geteuid()))})
}

// own makes a directory that only this user can write to, or checks that it is one. What lies in it is loaded into programs, so
// nobody else may be able to change it.
func own(dir string) error {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(parent)
	if err != nil {
		return err
	}
	// Where entries are safe from others, it does not matter whose the directory is.
	if uid := owner(info); uid != os.Geteuid() && uid != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("%s belongs to another user (%d)", parent, uid)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err = os.Lstat(dir); err != nil {
		return err
	}
	uid := owner(info)
	switch {
	case !info.IsDir(): // a link
		return fmt.Errorf("%s is not a directory", dir)
	case uid != os.Geteuid():
		return fmt.Errorf("%s belongs to another user (%d)", dir, uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("other users can write to %s", dir)
	}
	return nil
}

// owner gives the user whose file it is.
func owner(info fs.FileInfo) int {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(stat.Uid)
}

// executable checks that programs can load libraries from a directory.
func executable(dir string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if stat.Flags&unix.ST_NOEXEC != 0 {
		return fmt.Errorf("%s is mounted noexec", dir)
	}
	return nil
}

// replace makes a file hold data. Others see the old file or the new one, complete.
func replace(file string, data []byte) error {
	dir := filepath.Dir(file)
	sweep(dir)
	f, err := os.CreateTemp(dir, temporary+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o400), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error counts
	}
	return err
}
