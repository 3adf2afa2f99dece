// Package files has files as a segment is made of them, and tells one from the next.
package files

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// File is a regular file, open for reading. It is what a segment is made of.
type File struct {
	file   *os.File
	key    fileKey
	sealed bool
}

// fileKey identifies a file and its size. An inode number is used again once a file is gone, often for
// the next file, so the key has its generation too: as a part of the handle by which the file system
// names it to NFS. Where there is no handle, the time of birth stands for it, though a clock's tick may
// see two births; where there is neither, this one opening of the file.
type fileKey struct {
	dev, ino uint64
	handle   string
	birth    unix.StatxTimestamp
	opening  *os.File
	size     int64
}

// New takes f over, unless it fails.
func New(f *os.File) (*File, error) {
	var st unix.Statx_t
	var handle unix.FileHandle
	var err, noHandle error
	shm.Use(f, func() {
		err = unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_SIZE|unix.STATX_BTIME, &st)
		handle, _, noHandle = unix.NameToHandleAt(int(f.Fd()), "", unix.AT_EMPTY_PATH)
	})
	if err != nil {
		return nil, os.NewSyscallError("statx", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("%w: not a regular file", core.ErrUnsupported)
	}
	b := &File{file: f, key: fileKey{
		dev:  unix.Mkdev(st.Dev_major, st.Dev_minor),
		ino:  st.Ino,
		size: int64(st.Size),
	}}
	switch {
	case noHandle == nil:
		b.key.handle = string(handle.Bytes())
	case st.Mask&unix.STATX_BTIME != 0:
		b.key.birth = st.Btime
	default:
		b.key.opening = f
	}
	b.sealed, err = shm.Sealed(f)
	return b, err
}

// Key implements kit.Backing.
func (b *File) Key() any { return b.key }

// Size implements kit.Backing.
func (b *File) Size() int64 { return b.key.size }

// Sealed implements kit.Backing.
func (b *File) Sealed() bool { return b.sealed }

// Close implements kit.Backing.
func (b *File) Close() error { return shm.Close(b.file) }

// CheckWritable reports early what Open would say.
func (b *File) CheckWritable() error {
	f, err := b.Open(true)
	if err != nil {
		return err
	}
	return shm.Close(f)
}

// Open implements kit.Backing: it makes a descriptor of its own, which unlike a duplicate can have other rights.
func (b *File) Open(writable bool) (*os.File, error) {
	if !writable {
		return shm.ReadOnly(b.file)
	}
	f, err := shm.ReadWrite(b.file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", core.ErrReadOnly, err)
	}
	return f, nil
}
