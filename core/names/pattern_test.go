package names

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

func TestPatterns(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"model.*.weight": "", `state["*"]`: "", "main().*": "", "**": "", "model.**": "", "model.**.bias": "", "x*y.z": "", "s*[m.0.w].*": "s*[m[0].w].*",
		`d['a*'][*][0, ::2]`: `d["a*"][*][0, ::2]`, `load(thread="a").**["*"]`: "",
	} {
		p, err := ParsePattern(pattern)
		if want == "" {
			want = pattern
		}
		if err != nil || !p.Globs() || p.String() != want || !IsPattern(pattern) {
			t.Errorf("%s is %s, %v", pattern, p, err)
		}
	}
	for _, pattern := range []string{"*.", "x.**.**", "**.**", "x[**]", "x[1:].*", "x[* ,0]", "ma*n().x", "x*(", "x[a.*].*"} {
		if p, err := ParsePattern(pattern); !errors.Is(err, core.ErrConfig) {
			t.Errorf("%s is %s, %v", pattern, p, err)
		}
	}
	for _, name := range []string{"x", `d["a"]`, "x[::2]", "x y*"} {
		if IsPattern(name) {
			t.Errorf("%s is a pattern", name)
		}
	}
	if p, err := Parse(`state["*"]`); err != nil || p.Steps[0].Text != "*" {
		t.Errorf("a key that is a star: %+v, %v", p, err)
	}
	for _, name := range []string{"*", "x.*", "x[*]"} {
		if p, err := Parse(name); err == nil {
			t.Errorf("%s is the name %+v", name, p)
		}
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern string
		step    Step
		want    bool
	}{
		{"x.*", attr("weight"), true},
		{"x.*", attr("_hidden"), false},
		{"x._*", attr("_hidden"), true},
		{"x.w*t", attr("weight"), true},
		{"x.w*t", attr("weights"), false},
		{"x.*", key("weight"), false},
		{"x.*", item(7), true},
		{"x.w*", item(7), false},
		{`x["*"]`, key("_any thing"), true},
		{`x["*.weight"]`, key("0.weight"), true},
		{`x["a*b*a"]`, key("aba"), true},
		{`x["a*b*a"]`, key("ab"), false},
		{`x["*"]`, item(1), false},
		{"x[*]", item(1), true},
		{"x[*]", key("a"), true},
		{"x[*]", attr("a"), false},
		{"x[*]", slice(word("a"), word("b")), true},
		{"x[*]", by(Path{Root: "a"}), true},
		{"x[a.0].*", by(Path{Root: "a", Steps: []Step{item(0)}}), true},
		{"x[a].*", by(Path{Root: "b"}), false},
		{"x[a].*", item(0), false},
		{`x["a", 1].*`, slice(word("a"), Subscript{At: 1}), true},
		{`x["a", 1].*`, slice(word("a"), Subscript{At: 2}), false},
		{"x[1].*", item(1), true},
		{"x[1].*", item(2), false},
	} {
		p, err := ParsePattern(tt.pattern)
		if err != nil || p.Steps[0].Matches(tt.step) != tt.want {
			t.Errorf("%s and %s: want %v, %v", tt.pattern, tt.step, tt.want, err)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, pattern := range []string{"model.*.weight", `state["*"][*].**.x[::2]`, "main().**"} {
		f.Add(pattern)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		p, err := ParsePattern(pattern)
		if err != nil {
			return
		}
		again, err := ParsePattern(p.String())
		if err != nil && len(p.String()) <= maxBytes || err == nil && again.String() != p.String() {
			t.Errorf("%q, spelt %q, reads back as %q, %v", pattern, p, again, err)
		}
		if name, err := Parse(pattern); err == nil && !strings.Contains(pattern, "*") && name.String() != p.String() {
			t.Errorf("%q is another name as a pattern: %q", pattern, p)
		}
	})
}
