package process

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func file(t *testing.T, dir, name string, content []byte, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLookPath(t *testing.T) {
	t.Parallel()
	a, b := t.TempDir(), t.TempDir()
	file(t, a, "python3", nil, 0o600) // not executable, so the search goes on
	want := file(t, b, "python3", nil, 0o700)
	if err := os.Mkdir(filepath.Join(a, "python"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{"/nowhere", "", a, b}, ":")
	if got, err := LookPath("python3", path); err != nil || got != want {
		t.Errorf("LookPath = %q, %v; want %q", got, err, want)
	}
	if got, err := LookPath(want, ""); err != nil || got != want {
		t.Errorf("LookPath of a path = %q, %v", got, err)
	}
	for name, text := range map[string]string{
		"python":       "there is no python on PATH",
		a + "/python":  "is a directory",
		a + "/python3": "is not executable",
		a + "/x":       "does not exist",
		want + "/x":    "not a directory",
	} {
		if _, err := LookPath(name, path); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("LookPath(%q) = %v, want %q", name, err, text)
		}
	}
}

func TestPreloadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const glibc = "/lib64/ld-linux-x86-64.so.2"
	for name, test := range map[string]struct {
		content []byte
		want    string // "" is yes
	}{
		"glibc":        {program(t, glibc, "libc.so.6"), ""},
		"no libraries": {program(t, glibc), ""},
		"wrapper":      {[]byte("#!/bin/sh\nexec python3 \"$@\"\n"), ""},
		"musl":         {program(t, "/lib/ld-musl-x86_64.so.1", "libc.musl-x86_64.so.1"), "musl"},
		"static":       {program(t, ""), "statically linked"},
		"asan":         {program(t, glibc, "libasan.so.8", "libc.so.6"), "sanitizer (libasan.so.8)"},
		"clang's asan": {program(t, glibc, "libc.so.6", "libclang_rt.asan-x86_64.so"), "sanitizer"},
		"text":         {[]byte("hello, world"), "is not a program"},
		"empty":        {nil, "cannot be read"},
		"cut":          {program(t, glibc, "libc.so.6")[:100], "is not a program"},
	} {
		path := file(t, dir, name, test.content, 0o700)
		err := Preloadable(path)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: Preloadable = %v, want %q", name, err, test.want)
		}
	}
	if err := Preloadable("/nowhere"); err == nil {
		t.Error("a file that does not exist can be preloaded into")
	}
}

// program makes an ELF file with a loader and needed libraries, and nothing else.
func program(t *testing.T, loader string, libs ...string) []byte {
	t.Helper()
	const headers = 64 + 56 // of the file and of one segment
	strtab := []byte{0}
	var dynamic []elf.Dyn64
	for _, lib := range libs {
		dynamic = append(dynamic, elf.Dyn64{Tag: int64(elf.DT_NEEDED), Val: uint64(len(strtab))})
		strtab = append(append(strtab, lib...), 0)
	}
	dynamic = append(dynamic, elf.Dyn64{})
	interp := append([]byte(loader), 0)
	strings := headers + uint64(len(interp))
	dyn := strings + uint64(len(strtab))
	sections := dyn + uint64(16*len(dynamic))
	segment := elf.Prog64{Type: uint32(elf.PT_INTERP), Off: headers, Filesz: uint64(len(interp)), Memsz: uint64(len(interp))}
	if loader == "" {
		segment.Type = uint32(elf.PT_NOTE)
	}
	head := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Shoff: sections, Ehsize: 64,
		Phentsize: 56, Phnum: 1, Shentsize: 64, Shnum: 3, Shstrndx: 1,
	}
	copy(head.Ident[:], elf.ELFMAG)
	head.Ident[elf.EI_CLASS] = byte(elf.ELFCLASS64)
	head.Ident[elf.EI_DATA] = byte(elf.ELFDATA2LSB)
	head.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	var out bytes.Buffer
	for _, part := range []any{
		head, segment, interp, strtab, dynamic,
		elf.Section64{},
		elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: strings, Size: uint64(len(strtab))},
		elf.Section64{Type: uint32(elf.SHT_DYNAMIC), Off: dyn, Size: uint64(16 * len(dynamic)), Link: 1, Entsize: 16},
	} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}
