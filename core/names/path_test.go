package names

import (
	"cmp"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ndbridge/ndbridge/core"
)

func attr(name string) Step { return Step{Kind: Attr, Text: name} }
func key(text string) Step  { return Step{Kind: Key, Text: text} }
func item(i int64) Step     { return Step{Kind: Item, Item: i} }

func by(p Path) Step { return Step{Kind: ByName, By: &p} }

func slice(of ...Subscript) Step { return Step{Kind: Slice, Of: of} }
func word(text string) Subscript { return Subscript{Kind: Word, Text: text} }
func bound(n int64) Bound        { return Bound{Given: true, N: n} }

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		root  string
		steps []Step
		text  string // "": the same as name
	}{
		{name: "frame", root: "frame"},
		{name: "_x1", root: "_x1"},
		{name: "größe", root: "größe"},
		{name: "数据", root: "数据"},
		{name: "model.weight", root: "model", steps: []Step{attr("weight")}},
		{name: "frames[0]", root: "frames", steps: []Step{item(0)}},
		{name: "layers.0.weight", root: "layers", steps: []Step{item(0), attr("weight")}, text: "layers[0].weight"},
		{name: "layers.12[3].7", root: "layers", steps: []Step{item(12), item(3), item(7)}, text: "layers[12][3][7]"},
		{name: "frames[-1]", root: "frames", steps: []Step{item(-1)}},
		{name: "frames[ 007 ]", root: "frames", steps: []Step{item(7)}, text: "frames[7]"},
		{name: `batch["x"]`, root: "batch", steps: []Step{key("x")}},
		{
			name: `d['k'][-1].x`, root: "d", steps: []Step{key("k"), item(-1), attr("x")},
			text: `d["k"][-1].x`,
		},
		{name: `d['say "hi"']`, root: "d", steps: []Step{key(`say "hi"`)}, text: `d["say \"hi\""]`},
		{name: `d["it's"]`, root: "d", steps: []Step{key("it's")}},
		{name: `d['it\'s']`, root: "d", steps: []Step{key("it's")}, text: `d["it's"]`},
		{
			name: `d["a\\b\n\x01é\u0007\U0001f600"]`, root: "d",
			steps: []Step{key("a\\b\n\x01é\a😀")}, text: `d["a\\b\n\x01é\x07😀"]`,
		},
		{name: `d["\xe9"]`, root: "d", steps: []Step{key("é")}, text: `d["é"]`},
		{name: `d[""]`, root: "d", steps: []Step{key("")}},
		{name: `d["a].b"]`, root: "d", steps: []Step{key("a].b")}},
		{name: "x[9223372036854775807]", root: "x", steps: []Step{item(1<<63 - 1)}},
		{name: "frames[::2, 10:]", root: "frames", steps: []Step{slice(Subscript{Kind: Range, Step: bound(2)}, Subscript{Kind: Range, Start: bound(10)})}},
		{name: `b["x"][0,...,3:]`, root: "b", steps: []Step{key("x"), slice(Subscript{}, Subscript{Kind: Rest}, Subscript{Kind: Range, Start: bound(3)})}, text: `b["x"][0, ..., 3:]`},
		{name: "x[ None , -1 : -5 : -2 ,]", root: "x", steps: []Step{slice(Subscript{Kind: NewAxis}, Subscript{Kind: Range, Start: bound(-1), Stop: bound(-5), Step: bound(-2)})}, text: "x[None, -1:-5:-2]"},
		{name: "x[:]", root: "x", steps: []Step{slice(Subscript{Kind: Range})}},
		{name: "x[::]", root: "x", steps: []Step{slice(Subscript{Kind: Range})}, text: "x[:]"},
		{name: "x[0,]", root: "x", steps: []Step{slice(Subscript{})}},
		{name: `d["a", "b"].x`, root: "d", steps: []Step{slice(word("a"), word("b")), attr("x")}},
		{name: `d[('a', -1)][0]`, root: "d", steps: []Step{slice(word("a"), Subscript{At: -1}), item(0)}, text: `d["a", -1][0]`},
		{name: `d[( 0 , 1 )]`, root: "d", steps: []Step{slice(Subscript{}, Subscript{At: 1})}, text: `d[0, 1]`},
		{name: `d[("a",)]`, root: "d", steps: []Step{slice(word("a"))}, text: `d["a",]`},
		{name: "s[ m.0.w ].x", root: "s", steps: []Step{by(Path{Root: "m", Steps: []Step{item(0), attr("w")}}), attr("x")}, text: "s[m[0].w].x"},
		{name: `s[f(thread="a]").x[m["]"][y]]][0]`, root: "s", steps: []Step{by(Path{Of: Function{Name: "f", Thread: "a]"}, Root: "x", Steps: []Step{by(Path{Root: "m", Steps: []Step{key("]"), by(Path{Root: "y"})}})}}), item(0)}},
		{name: "x[Nonesuch]", root: "x", steps: []Step{by(Path{Root: "Nonesuch"})}},
		{name: "x[:99999999999999999999]", root: "x", steps: []Step{slice(Subscript{Kind: Range, Stop: bound(1<<63 - 1)})}, text: "x[:9223372036854775807]"},
	}
	for _, tt := range tests {
		p, err := Parse(tt.name)
		if err != nil || p.Root != tt.root || !reflect.DeepEqual(p.Steps, tt.steps) {
			t.Errorf("%s: %+v, %v", tt.name, p, err)
		}
		if want := max(tt.text, ""); want == "" && p.String() != tt.name || want != "" && p.String() != want {
			t.Errorf("%s is spelt %s", tt.name, p)
		}
	}
}

func TestParseFunctions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		of   Function
		rest string // of the name
		text string // "": the same as name
	}{
		{name: "main().loss", of: Function{Name: "main"}, rest: "loss"},
		{name: "main().model.weight", of: Function{Name: "main"}, rest: "model.weight"},
		{name: `Trainer.fit().batch["x"]`, of: Function{Name: "Trainer.fit"}, rest: `batch["x"]`},
		{name: "pkg.train:Trainer.fit().x", of: Function{Module: "pkg.train", Name: "Trainer.fit"}, rest: "x"},
		{name: "main.<locals>.inner().x", of: Function{Name: "main.inner"}, rest: "x", text: "main.inner().x"},
		{name: "<lambda>().x", of: Function{Name: "<lambda>"}, rest: "x"},
		{name: "f.<lambda>().x[0]", of: Function{Name: "f.<lambda>"}, rest: "x[0]"},
		{name: `load( thread = 'a "b"' ).x`, of: Function{Name: "load", Thread: `a "b"`}, rest: "x", text: `load(thread="a \"b\"").x`},
		{name: `load(task='a').x`, of: Function{Name: "load", Task: "a"}, rest: "x", text: `load(task="a").x`},
		{name: "größe( ).x", of: Function{Name: "größe"}, rest: "x", text: "größe().x"},
	}
	for _, tt := range tests {
		p, err := Parse(tt.name)
		rest := Path{Root: p.Root, Steps: p.Steps}
		if err != nil || p.Of != tt.of || rest.String() != tt.rest {
			t.Errorf("%s: %+v, %v", tt.name, p, err)
		}
		if want := cmp.Or(tt.text, tt.name); p.String() != want {
			t.Errorf("%s is spelt %s, want %s", tt.name, p, want)
		}
	}
}

// TestParseFunction: a module that is to be imported stands before a name, and nowhere else.
func TestParseFunction(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ module, path string }{
		"json:dumps":                {"json", "dumps"},
		"pkg.model:Net.0.predict":   {"pkg.model", "Net[0].predict"},
		`größe:d["a:b"][x.y]`:       {"größe", `d["a:b"][x.y]`},
		"predict":                   {"", "predict"},
		`d["a:b"].f`:                {"", `d["a:b"].f`},
		"pkg.train:Trainer.fit().x": {"", "pkg.train:Trainer.fit().x"},
	} {
		module, p, err := ParseFunction(name)
		if module != want.module || p.String() != want.path || err != nil {
			t.Errorf("%s: %q, %s, %v", name, module, p, err)
		}
	}
	for _, name := range []string{"a:", ":b", "a:b:c", "a.:b", "1:b", "a:1", "<a>:b", "a:<b>", "a:b()", "a:b().", "a: b", "x[a:b]", "a:x[b:c]", "a b:c"} {
		if module, p, err := ParseFunction(name); !errors.Is(err, core.ErrConfig) {
			t.Errorf("%s: %q, %s, %v, want ErrConfig", name, module, p, err)
		}
	}
	if _, err := Parse("json:dumps"); err == nil || !strings.Contains(err.Error(), "imported for functions alone") {
		t.Errorf("what is looked at: %v", err)
	}
}

func TestFunctionIs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"fit": true, "Trainer.fit": true, "train.Trainer.fit": true, "pkg.train.Trainer.fit": true, "pkg.train:Trainer.fit": true,
		"it": false, "train.fit": false, "train:Trainer.fit": false, "pkg.train:fit": false, "Trainer": false, "x.pkg.train.Trainer.fit": false,
	} {
		p, err := Parse(name + "().x")
		if err != nil || p.Of.Is("pkg.train", "Trainer.fit") != want {
			t.Errorf("%s: %v, %v", name, !want, err)
		}
	}
	if f := (Function{Name: "main.inner.<lambda>"}); !f.Is("__main__", "main.<locals>.inner.<locals>.<lambda>") {
		t.Errorf("%s is not the lambda in main's inner", f)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", " ", "1x", ".x", "x.", "x..y", "x.01", "x.1a", "x[", "x[]", "x[1", "x[a", "x[a b]", "x[a, b]", "x[a.]", "x[a[0]", "x[a()]", "x[*a]", "x[a.*]", "x[(a)]", "x[1.5]", "x[,]", "x[,1]", "x[1,,2]", "x[1:2:0]",
		"x[1:2:3:4]", "x[..., ...]", "x[..]", "x[....]", "x[None:]", "x[:a]", `x[0, "a", :]`, `x["a", None]`, `x["a" "b"]`, `x[("a")]`, "x[(1)]", "x[(1:2,)]", "x[()]", `x[("a",]`, "x[((1, 2),)]", "x[1:-]", "x[None.a]", "x[99999999999999999999, 0]",
		"x[--1]", "x[-]", "x[+1]", "x['a]", `x["a']`, "x]", "x y", "x()", "x+y", "x[0]()", "__import__('os')",
		"main().", "main()x", "main()[0]", "().x", "main(1).x", "main(thread=x).x", `main(thread="").x`, `main(thread="x).y`, `main("x").y`,
		"a:b", "a:b.c", "a:b:c().x", ":main().x", "a:().x", "<locals>().x", "<lambda>", "<a.b>().x", "<a:b>().x", "<a>:b().x", "main()().x",
		"main( .x", `main(thread="a",).x`, `main(name="a").x`, "main().1", "x.main()", "main(thread).x", `main(task="").x`, `main(task="a", thread="b").x`, "main(task).x",
		"x[9223372036854775808]", `x["\q"]`, `x["\x4"]`, `x["\u12"]`, "x[b'a']", "x\x00", "x\xff", "x[0] ",
		strings.Repeat("x[", maxInner+1) + "x" + strings.Repeat("]", maxInner+1), strings.Repeat("x", maxBytes+1), "x" + strings.Repeat(".y", maxSteps+1), `x["\ud800"]`,
	} {
		if p, err := Parse(name); !errors.Is(err, core.ErrConfig) {
			t.Errorf("%.50q: %+v, %v, want ErrConfig", name, p, err)
		}
	}
}

// TestLongNames: errors say the limit, and do not quote all of a name.
func TestLongNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", maxBytes/2+1)
	for name, want := range map[string]string{
		long:                                   "4098 bytes long; use a name of at most 4096 bytes",
		"x[" + strings.Repeat("1", 4000) + "]": "is too large",
	} {
		_, err := Parse(name)
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
			t.Errorf("%.50q: %v", name, err)
		}
	}
	if s := Clip("x" + long); !utf8.ValidString(s) || len(s) > 110 || Clip("short") != "short" {
		t.Errorf("Clip = %q", s)
	}
}

func FuzzPath(f *testing.F) {
	for _, name := range []string{"frame", "a.b[0]['k'][\"x\"]", `d["\x07\u1234\U0001f600\""]`, "x[-1]", "größe.x", "x[::2, None, ..., -3:4:-1][0,]", "s[m.w[f().x]][0]", `x[("a", 1)]["b",]`, "a.b:c.<locals>.d(thread='x').e.f"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		p, err := Parse(name)
		if err != nil {
			if !errors.Is(err, core.ErrConfig) {
				t.Errorf("%q: %v", name, err)
			}
			return
		}
		if !utf8.ValidString(p.String()) {
			t.Errorf("%q is spelt %q", name, p)
		}
		again, err := (&parser{rest: p.String()}).parse()
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%q, spelt %q, reads back as %+v, %v; want %+v", name, p, again, err, p)
		}
	})
}
