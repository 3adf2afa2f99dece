package process

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// LookPath finds an executable as a shell with the given PATH would.
func LookPath(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, Executable(name)
	}
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "."
		}
		file := filepath.Join(dir, name)
		if Executable(file) == nil {
			return filepath.Abs(file)
		}
	}
	return "", fmt.Errorf("there is no %s on PATH (%s)", name, path)
}

// Executable says why a file cannot be executed, or nil.
func Executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s does not exist", file)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", file)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable", file)
	}
	return nil
}

// Preloadable says whether a glibc library can be preloaded into what an interpreter's file runs,
// or why not. A wrong guess would be fatal: a musl interpreter, or one built with the address
// sanitizer, does not even start with it.
func Preloadable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	var magic [4]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil {
		return fmt.Errorf("%s cannot be read: %w", path, err)
	}
	if bytes.HasPrefix(magic[:], []byte("#!")) {
		return nil // a wrapper, such as pyenv's shims
	}
	e, err := elf.NewFile(f)
	if err != nil {
		return fmt.Errorf("%s is not a program: %w", path, err)
	}
	loader := elfLoader(e)
	switch {
	case loader == "":
		return errors.New("the interpreter is statically linked")
	case strings.Contains(filepath.Base(loader), "musl"):
		return errors.New("the interpreter uses the musl C library")
	}
	libs, err := e.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", path, err)
	}
	for _, lib := range libs {
		for _, sanitizer := range []string{"libasan.", "libtsan.", "liblsan.", "libclang_rt."} {
			if strings.HasPrefix(lib, sanitizer) {
				return fmt.Errorf("the interpreter is built with a sanitizer (%s)", lib)
			}
		}
	}
	return nil
}

// elfLoader gives the dynamic loader that a program names, or "".
func elfLoader(e *elf.File) string {
	for _, p := range e.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz > 4096 {
			continue
		}
		name := make([]byte, p.Filesz)
		if _, err := p.ReadAt(name, 0); err != nil {
			return ""
		}
		return string(bytes.TrimRight(name, "\x00"))
	}
	return ""
}
