package prose

import (
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	candidates := []string{"module", "script", "start_timeout", "größe", "z", strings.Repeat("x", 1<<20)}
	for _, test := range []struct{ name, want string }{
		{"skript", "script"},
		{"SCRIPT", "script"},
		{"modul", "module"},
		{"start-timeout", "start_timeout"},
		{"script", "script"},
		{"x", ""},
		{"completely", ""},
		{"", ""},
		{"y", ""},
		{"grosse", ""},
		{"grösse", "größe"},
	} {
		if got := Nearest(test.name, slices.Values(candidates)); got != test.want {
			t.Errorf("Nearest(%q) = %q, want %q", test.name, got, test.want)
		}
	}
}

func TestRemedy(t *testing.T) {
	t.Parallel()
	candidates := []string{"camera", "trainer"}
	if got, want := Remedy("camra", slices.Values(candidates), "look"), `did you mean "camera"?`; got != want {
		t.Errorf("Remedy = %q, want %q", got, want)
	}
	if got := Remedy("zebra", slices.Values(candidates), "look"); got != "look" {
		t.Errorf("Remedy = %q, want the fallback", got)
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"größe", "grösse", 2},
		{"", "abc", 3},
		{"abc", "", 3},
		{"abc", "abc", 0},
		{"abc", "acb", 1},
		{"abc", "abx", 1},
		{"abc", "xabc", 1},
		{"kitten", "sitting", 3},
	} {
		if got := distance([]rune(test.a), []rune(test.b)); got != test.want {
			t.Errorf("distance(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
		if got := distance([]rune(test.b), []rune(test.a)); got != test.want {
			t.Errorf("distance(%q, %q) = %d, want %d", test.b, test.a, got, test.want)
		}
	}
}
