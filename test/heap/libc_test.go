package heap

import (
	"debug/elf"
	"strconv"
	"strings"
	"testing"
)

// TestLoadsWithOlderLibcs: the library is built on one machine and loaded on others, where the libc may be older. It takes no
// function in a version that is newer than newest.
func TestLoadsWithOlderLibcs(t *testing.T) {
	t.Parallel()
	const newest = 22 // of glibc 2: fmemopen
	file, err := elf.Open(library(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	versions := 0
	for _, s := range symbols {
		_, minor, ok := strings.Cut(s.Version, "GLIBC_2.")
		if !ok {
			continue
		}
		versions++
		major, _, _ := strings.Cut(minor, ".")
		if n, err := strconv.Atoi(major); err != nil || n > newest {
			t.Errorf("%s is wanted as of %s", s.Name, s.Version)
		}
	}
	if versions == 0 {
		t.Error("no function has a version")
	}
}
