package hostplugin

import (
	"math"
	"testing"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "4096B": 4096, "64KiB": 64 << 10, "64 KiB": 64 << 10, "3MiB": 3 << 20, "1GiB": 1 << 30, "9223372036854775807KiB": math.MaxInt64,
	} {
		if got, ok := parseSize(text); !ok || got != want {
			t.Errorf("parseSize(%q) = %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "KiB", "-1", "1kb", "1.5MiB", "0x10", "1  KiB", "9223372036854775808"} {
		if got, ok := parseSize(text); ok {
			t.Errorf("parseSize(%q) = %d", text, got)
		}
	}
	for n, want := range map[int64]string{5: "5B", 4096: "4KiB", 1<<20 + 1: "1048577B", 3 << 30: "3GiB", 1 << 40: "1TiB"} {
		if got := formatSize(n); got != want {
			t.Errorf("FormatSize(%d) = %q, want %q", n, got, want)
		}
	}
}
