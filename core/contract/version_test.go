package contract_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// ascending lists versions in the order of PEP 440.
var ascending = []string{
	"0", "0.0.1.dev1", "0.0.1", "0.4.26", "0.10", "1.0.dev456", "1.0a1", "1.0a2.dev456", "1.0a12.dev456", "1.0a12",
	"1.0b1.dev456", "1.0b2", "1.0b2.post345.dev456", "1.0b2.post345", "1.0rc1.dev456", "1.0rc1", "1.0rc2", "1.0",
	"1.0.post456.dev34", "1.0.post456", "1.0.1", "1.1.dev1", "1.9", "1.10", "1.26.4", "2.0.0rc1", "2.0.0", "2.0.1",
	"2.11.0", "2.11.1", "14.1.0", "2024.1", "1!0.1", "1!2.0",
}

func version(t *testing.T, text string) contract.Version {
	t.Helper()
	v, err := contract.ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVersionOrder(t *testing.T) {
	t.Parallel()
	for i, a := range ascending {
		for j, b := range ascending {
			got := version(t, a).Compare(version(t, b))
			if got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%s compared with %s is %d", a, b, got)
			}
		}
		if got := version(t, a).String(); got != a {
			t.Errorf("%s is printed as %s", a, got)
		}
	}
}

func TestVersionSpellings(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"2.0", "2", "2.0.0", "2.0.0.0", "v2.0", " 2.0 ", "2.0+cu128", "2.0+git.abc", "0!2.0"},
		{"1.0a1", "1.0.a1", "1.0-a1", "1.0_a1", "1.0alpha1", "1.0A1", "1.0.alpha.1", "1.0a01", "1.0.0a1+local"},
		{"1.0b2", "1.0beta2", "1.0-beta-2"},
		{"1.0rc3", "1.0c3", "1.0pre3", "1.0preview3", "1.0-RC3"},
		{"1.0a0", "1.0a", "1.0.a"},
		{"1.0.post1", "1.0post1", "1.0-1", "1.0.rev1", "1.0r1", "1.0-post1"},
		{"1.0.dev1", "1.0dev1", "1.0-dev1", "1.0_dev_1"},
		{"1.0.post0", "1.0.post"},
		{"2.11.0a0+gitabc", "2.11a0"},
		{"3.13.0rc1+", "3.13.0rc1"},
	} {
		for _, text := range same {
			if got := version(t, text).Compare(version(t, same[0])); got != 0 {
				t.Errorf("%s compared with %s is %d", text, same[0], got)
			}
		}
	}
}

func TestParseVersionRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "unknown", "abc", ".", "1..0", "1.", "1.0.", "1.0x", "1.0a1b1", "1.0.dev1.post1", "1.0..dev1", "-1", "!1",
		"x!1", "1!", "1.0 beta", "1.0-", "1.0.-1", "1.0_1x", "1.0post1post2", "99999999999999999999", "1.0\x00", "１.0",
		"1.0a99999999999999999999", strings.Repeat("1.", 10), "+cu128",
	} {
		if v, err := contract.ParseVersion(text); !errors.Is(err, core.ErrVersion) || v.String() != "" {
			t.Errorf("%q is read as %v, %v", text, v, err)
		}
	}
}

func TestQuirkApplies(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		since, until, version string
		want                  bool
	}{
		{"", "", "1.0", true},
		{"", "", "unknown", true},
		{"1.26", "", "1.25.9", false},
		{"1.26", "", "1.26.0", true},
		{"1.26", "", "1.26.4", true},
		{"1.26", "", "2.0.0rc1", true},
		{"1.26", "", "unknown", true},
		{"", "2.1", "2.0.2", true},
		{"", "2.1", "2.1.0rc1", true},
		{"", "2.1", "2.1", false},
		{"", "2.1", "2.1.0+cu128", false},
		{"", "2.1", "2.10", false},
		{"", "2.1", "unknown", false},
		{"", "2.1", "", false},
		{"2.0", "2.1", "2.0.0rc1", false},
		{"2.0.0rc1", "2.1", "2.0.0rc1", true},
		{"2.0", "2.1", "2.0.5.post1", true},
		{"2.11.0", "2.12", "2.11.0+cu128", true},
		{"2.11.0", "2.12", "2.11.0a0+git123", false},
	} {
		q := contract.Quirk{ID: "x.y", Since: tc.since, Until: tc.until}
		if got := q.Applies(tc.version); got != tc.want {
			t.Errorf("from %q until %q for %q: %v", tc.since, tc.until, tc.version, got)
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	for i := range ascending {
		f.Add(ascending[i], ascending[len(ascending)-1-i])
	}
	f.Add("2.0+cu128", "v1!1.0-1.dev0")
	f.Fuzz(func(t *testing.T, a, b string) {
		v, err := contract.ParseVersion(a)
		if err != nil {
			if !errors.Is(err, core.ErrVersion) {
				t.Errorf("%q: %v", a, err)
			}
			return
		}
		if again, _ := contract.ParseVersion(a); v.String() != a || v.Compare(again) != 0 {
			t.Errorf("%q is printed as %q, and compared with itself %d", a, v, v.Compare(again))
		}
		if w, err := contract.ParseVersion(b); err == nil && v.Compare(w) != -w.Compare(v) {
			t.Errorf("%q and %q compare as %d and %d", a, b, v.Compare(w), w.Compare(v))
		}
		(contract.Quirk{Since: a, Until: b}).Applies(b)
	})
}
