//go:build linux

// Package shm is host memory behind file descriptors that processes share: memfds that cannot shrink, mappings of what
// another process sent, none of which is trusted, and sleep on a word of such memory.
package shm

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
)

// Create makes a memfd of size bytes, all zero, and seals its size: it can neither shrink nor grow,
// and no seal can be added. Its pages are allocated when they are first written. The file is open
// for reading and writing and close-on-exec; the caller owns it. The name shows in /proc/*/maps.
func Create(name string, size int64) (*os.File, error) {
	if size <= 0 {
		return nil, fmt.Errorf("memfd of %d bytes: %w", size, unix.EINVAL)
	}
	f, err := create(name)
	if err != nil {
		err = os.NewSyscallError("memfd_create", err)
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
			return nil, unavailable("make shared memory", err, "let the sandbox or container allow memfd_create and file seals")
		}
		return nil, err
	}
	err = control(f, func(fd int) error {
		if err := unix.Ftruncate(fd, size); errors.Is(err, unix.EFBIG) {
			return unavailable("make shared memory", fmt.Errorf("%s of %d bytes: %w", f.Name(), size, err),
				"raise the limit of the process on the size of files (RLIMIT_FSIZE, ulimit -f)")
		} else if err != nil {
			return os.NewSyscallError("ftruncate", err)
		}
		const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
		_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
		return os.NewSyscallError("fcntl", err)
	})
	if err != nil {
		return nil, joined(err, f)
	}
	return f, nil
}

func create(name string) (f *os.File, err error) {
	Apart(func() {
		const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
		var fd int
		fd, err = unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
		if errors.Is(err, unix.EINVAL) { // Linux before 6.3 does not know MFD_NOEXEC_SEAL
			fd, err = unix.MemfdCreate(name, flags)
		}
		if err == nil {
			f = opened(fd, "memfd:"+name)
		}
	})
	return f, err
}

// Sealed reports whether f is a memfd that can no longer shrink, so that a mapping of it within its
// size never faults. A file that cannot be sealed at all is no error.
func Sealed(f *os.File) (bool, error) {
	var seals int
	err := control(f, func(fd int) (err error) {
		seals, err = unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
		return err
	})
	switch {
	case errors.Is(err, unix.EINVAL): // not a file that knows seals
		return false, nil
	case err != nil:
		return false, fmt.Errorf("seals of %s: %w", f.Name(), err)
	default:
		return seals&unix.F_SEAL_SHRINK != 0, nil
	}
}

// ReadOnly opens f's file again, for reading only, so that who gets the descriptor cannot write the
// file through it. The caller owns the result; f stays open.
func ReadOnly(f *os.File) (*os.File, error) { return reopen(f, unix.O_RDONLY) }

// ReadWrite opens f's file again, for reading and writing; the file must allow that. The caller owns the
// new file; f stays the caller's.
func ReadWrite(f *os.File) (*os.File, error) { return reopen(f, unix.O_RDWR) }

// Again is ReadOnly or ReadWrite of the file behind a descriptor, which stays the caller's: in the table of a thread that has
// one of its own, or with task 0 in the process's.
func Again(task, fd int, writable bool) (*os.File, error) {
	mode := unix.O_RDONLY
	if writable {
		mode = unix.O_RDWR
	}
	table := "/proc/self/"
	if task != 0 {
		table += "task/" + strconv.Itoa(task) + "/"
	}
	return OpenPath(table+"fd/"+strconv.Itoa(fd), mode)
}

func reopen(f *os.File, mode int) (*os.File, error) {
	var again *os.File
	err := control(f, func(fd int) (err error) {
		table := "/proc/self/fd/"
		if IsApart(f) {
			table = "/proc/thread-self/fd/"
		}
		again, err = OpenPath(table+strconv.Itoa(fd), mode)
		return err
	})
	if err != nil {
		return nil, &os.PathError{Op: "reopen", Path: f.Name(), Err: err}
	}
	return again, nil
}

// sizeOf gives the size of a regular file, and refuses what only looks like one.
func sizeOf(f *os.File) (int64, error) {
	var st unix.Stat_t
	if err := control(f, func(fd int) error { return unix.Fstat(fd, &st) }); err != nil {
		return 0, invalid("stat %s: %w", f.Name(), err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, invalid("%s: expected a regular file or memfd, got mode %#o", f.Name(), st.Mode)
	}
	return st.Size, nil
}

func unavailable(op string, err error, remedy string) error {
	return &core.Error{Op: op, Kind: core.ErrUnavailable, Err: err, Remedy: remedy}
}

func invalid(format string, args ...any) error {
	return &core.Error{Op: "map", Kind: core.ErrPointer, Err: fmt.Errorf(format, args...)}
}

// HugePages says how the machine's administrator can give shared memory huge pages, or "" if it has them
// or the kernel does not say. Without them the first touch of large arrays is slower than it could be.
func HugePages() (remedy string) {
	const setting = "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
	if text, err := os.ReadFile(setting); err == nil && strings.Contains(string(text), "[never]") {
		return "echo advise > " + setting
	}
	return ""
}
