package heap

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestInside links the heap's sources with a program that uses them from many threads, and lets
// the sanitizers watch.
func TestInside(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob(filepath.Join(preloadDir, "*.c"))
	if err != nil {
		t.Fatal(err)
	}
	// Without what stands in front of the libc: that is the sanitizers' own place.
	sources = slices.DeleteFunc(sources, func(file string) bool {
		return slices.Contains([]string{"interpose.c", "limits.c", "closing.c", "mappings.c", "filling.c"}, filepath.Base(file))
	})
	sources = append(sources, filepath.Join(insideDir, "inside.c"))
	for _, sanitizer := range []string{"thread", "address", "undefined"} {
		t.Run(sanitizer, func(t *testing.T) {
			t.Parallel()
			// They keep shadows of all addresses, and do not like a terabyte of them.
			flags := append([]string{
				"-fsanitize=" + sanitizer, "-fno-sanitize-recover=all", "-DHEAP_RESERVE=(4*GIB)", "-I" + preloadDir,
			}, sources...)
			program, err := compile("inside-"+sanitizer, flags...)
			if err != nil {
				t.Fatal(err)
			}
			if out := run(t, command(t, program, "", []string{"TSAN_OPTIONS=halt_on_error=1"}, nil)); out != "" {
				t.Log(out)
			}
		})
	}
}
