package hostplugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/golden"
)

// TestParseGolden compares what Parse says about each file of testdata/config: the decoded Config,
// with paths relative to the file, or the diagnostics in both of their forms.
func TestParseGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/config/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, strings.TrimSuffix(file, ".hcl")+".golden", render(t, src))
		})
	}
}

// render parses src as /etc/nd.hcl, so that absolute paths are the same everywhere.
func render(t *testing.T, src []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	cfg, err := Parse("/etc/nd.hcl", src)
	if err == nil {
		text, err := json.MarshalIndent(cfg, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(text, '\n'))
		return out.Bytes()
	}
	if !reflect.DeepEqual(cfg, Config{}) {
		t.Errorf("a Config beside an error: %+v", cfg)
	}
	mistakes, ok := errors.AsType[*ConfigError](err)
	if !ok {
		t.Fatalf("error of type %T: %v", err, err)
	}
	out.WriteString(mistakes.Error() + "\n\n")
	if err := mistakes.Report(&out, 100, false); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestParseErrorsCarryDiagnostics(t *testing.T) {
	t.Parallel()
	_, err := Parse("x.hcl", []byte("program \"a\" {\n  scrpt = \"a.py\"\n}\n"))
	if !errors.Is(err, core.ErrConfig) {
		t.Errorf("error does not match ErrConfig: %v", err)
	}
	diags, ok := errors.AsType[hcl.Diagnostics](err)
	if !ok || len(diags) != 2 {
		t.Fatalf("diagnostics = %v", diags)
	}
	if s := diags[1].Subject; s == nil || s.Filename != "x.hcl" || s.Start.Line != 2 || s.Start.Column != 3 {
		t.Errorf("second mistake is at %v, want x.hcl:2,3", s)
	}
	if !strings.Contains(err.Error(), `Did you mean "script"?`) {
		t.Errorf("no suggestion in: %v", err)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "nd.hcl")
	if err := os.WriteFile(path, []byte(`program "a" { script = "sub/../a.py" }`), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "a.py"); cfg.Programs[0].Script != want {
		t.Errorf("script = %q, want %q", cfg.Programs[0].Script, want)
	}

	_, err = Load(filepath.Join(dir, "missing.hcl"))
	if !errors.Is(err, core.ErrConfig) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of a missing file = %v", err)
	}
	if text := err.Error(); strings.Count(text, "missing.hcl") != 1 {
		t.Errorf("the file is not named exactly once: %s", text)
	}
	if _, err := Load(dir); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), dir+": bad configuration: is a directory; ") {
		t.Errorf("Load of a directory = %v", err)
	}
}

func TestValidateGoConfig(t *testing.T) {
	t.Parallel()
	script := func(change func(*Program)) Config {
		p := Program{Name: "a", Script: "a.py"}
		change(&p)
		return Config{Programs: []Program{p}}
	}
	tests := map[string]struct {
		cfg  Config
		want string // a part of the only mistake's text; "" means none
	}{
		"zero":          {Config{}, ""},
		"script":        {script(func(*Program) {}), ""},
		"heap off":      {script(func(p *Program) { p.SharedHeap.Off = true }), ""},
		"no name":       {script(func(p *Program) { p.Name = "" }), `program "": A program's name`},
		"dash name":     {script(func(p *Program) { p.Name = "-x" }), `got "-x"`},
		"nothing":       {script(func(p *Program) { p.Script = "" }), "needs script or module"},
		"nul":           {script(func(p *Program) { p.Args = []string{"a", "b\x00"} }), "args must not contain a NUL"},
		"nul path":      {script(func(p *Program) { p.Script = "\x00" }), "script must not contain a NUL"},
		"nul env":       {script(func(p *Program) { p.Env = map[string]string{"A": "\x00"} }), "env must not contain"},
		"timeout":       {script(func(p *Program) { p.StartTimeout = -time.Second }), "must be positive, not -1s"},
		"threshold":     {script(func(p *Program) { p.SharedHeap.Threshold = 1 }), "between 4KiB and 1TiB"},
		"on_stuck":      {script(func(p *Program) { p.OnStuck = "kill" }), `on_stuck must be "end" or "wait", not "kill"`},
		"stuck_timeout": {script(func(p *Program) { p.StuckTimeout = -1 }), "stuck_timeout must be positive, not -1ns"},
		"promote":       {script(func(p *Program) { p.SharedHeap.Promote = "yes" }), `promote must be "always" or "never" or "safe", not "yes"`},
		"checksum":      {script(func(p *Program) { p.Checksum = "x" }), "64 hexadecimal digits"},
		"copy":          {Config{Adapters: []Adapter{{Name: "numpy", Copy: "sometimes"}}}, `not "sometimes"`},
		"sync":          {Config{Adapters: []Adapter{{Name: "numpy", Sync: "later"}}}, `Sync must be one of contract's sync policies, not "later"`},
		"adapter":       {Config{Adapters: []Adapter{{Name: "numpi"}}}, `Did you mean "numpy"?`},
		"empty adapter": {Config{Adapters: []Adapter{{}}}, "hold these adapters: "},
		"quirk": {
			Config{Adapters: []Adapter{{Name: "numpy", Quirks: []QuirkSetting{{ID: "x"}}}}},
			"has two parts",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := test.cfg.Validate()
			if test.want == "" {
				if err != nil {
					t.Errorf("Validate = %v", err)
				}
				return
			}
			if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Validate = %v, want %q", err, test.want)
			} else if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one mistake: %v", err)
			}
		})
	}
}

func TestCloneIsDeep(t *testing.T) {
	t.Parallel()
	cfg, err := Parse("/etc/nd.hcl", mustRead(t, "testdata/config/good.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	before := cfg.clone()
	cfg.Adapters[0].Quirks[0].Disabled = !cfg.Adapters[0].Quirks[0].Disabled
	p := &cfg.Programs[0]
	p.Args[0], p.Env["GREETING"], p.SharedHeap.Libraries[0] = "x", "x", "x"
	again, err := Parse("/etc/nd.hcl", mustRead(t, "testdata/config/good.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(before, again) {
		t.Errorf("the clone changed with its original:\n%+v\n%+v", before, again)
	}
}

func TestPathExpand(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("NDTEST_DIR", "from-env")
	cfg, err := Parse("/etc/nd.hcl", []byte(`
		program "a" { script = pathexpand("~/a.py") }
		program "b" { script = pathexpand("~user/b.py") }
		program "c" { script = "${env("NDTEST_DIR")}/c.py" }`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{home + "/a.py", "/etc/~user/b.py", "/etc/from-env/c.py"} {
		if got := cfg.Programs[i].Script; got != want {
			t.Errorf("script %d = %q, want %q", i, got, want)
		}
	}
}

// FuzzParse feeds arbitrary files: no panic, and either a Config that is valid or diagnostics.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/config/*.hcl")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		f.Add(mustRead(f, file))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		cfg, err := Parse("/etc/nd.hcl", src)
		if err == nil {
			err = cfg.Validate()
			if err != nil {
				t.Errorf("Parse accepts what Validate refuses: %v", err)
			}
			return
		}
		if mistakes, ok := errors.AsType[*ConfigError](err); !ok || mistakes.Error() == "" {
			t.Errorf("error of type %T: %q", err, err)
		}
	})
}

func mustRead(tb testing.TB, file string) []byte {
	tb.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
