package native

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// stampFile remembers what the files were like when their checksums were right.
	stampFile = "stamp"
	// temporary begins the names of files that are not complete yet.
	temporary = ".unpacking-"
	// abandoned is the age of a temporary file that nobody will complete.
	abandoned = time.Hour
)

// stamp describes the files as they are now. The kernel gives a file another change time with every change of it, so files
// with the stamp that they once had need not be read. It is "" if one is missing or is no regular file.
func (b *bundle) stamp(dir string) string {
	var text strings.Builder
	for _, s := range b.sums {
		info, err := os.Lstat(filepath.Join(dir, s.name))
		if err != nil || !info.Mode().IsRegular() {
			return ""
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return ""
		}
		_, _ = fmt.Fprintln(&text, s.name, stat.Ino, stat.Size, stat.Ctim.Sec, stat.Ctim.Nsec) // a builder takes all
	}
	return text.String()
}

// readStamp gives the stamp that a directory holds, or "".
func readStamp(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, stampFile))
	if err != nil {
		return ""
	}
	return string(text)
}

// hashOf gives the checksum of a regular file.
func hashOf(file string) (sum [sha256.Size]byte, err error) {
	info, err := os.Lstat(file)
	switch {
	case err != nil:
		return sum, err
	case !info.Mode().IsRegular():
		return sum, fs.ErrInvalid
	}
	f, err := os.Open(file)
	if err != nil {
		return sum, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	h := sha256.New()
	_, err = io.Copy(h, f)
	return [sha256.Size]byte(h.Sum(nil)), err
}

// sweep removes what hosts have left that were killed.
func sweep(dir string) {
	left, err := filepath.Glob(filepath.Join(dir, temporary+"*"))
	if err != nil {
		return // a pattern in the name of the directory
	}
	for _, file := range left {
		if info, err := os.Lstat(file); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = os.Remove(file) // another host may have been first
		}
	}
}
