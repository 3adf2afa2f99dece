package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestTree holds how names become a tree: in their order, without branches that lead to one thing, and with some of many parts.
func TestTree(t *testing.T) {
	t.Parallel()
	layout := func(n int) core.Layout {
		l, err := core.NewLayout(core.LayoutSpec{DType: core.Float64, Shape: []int{n}})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	var entries []contract.Entry
	for i, name := range []string{
		"shown.last", "model.b.weight", "model.b.bias", `model.a["x"][0].y`, "model", "main().x", "main().y[2]", "not a name!", "evil\x1b[31m",
	} {
		entries = append(entries, contract.Entry{Name: name, Framework: "numpy", Layout: layout(i)})
	}
	entries[0].Published, entries[1].Route, entries[2].Also = true, contract.RouteSharedHeap, []string{`d["b"]`}
	entries[8].Err = errors.New("no memory")
	for i := range 20 {
		entries = append(entries, contract.Entry{Name: fmt.Sprintf("many[%d]", i), Layout: layout(1)})
	}
	var b strings.Builder
	if err := writeRows(&b, treeOf("p", contract.Found{Entries: entries}).rows(""), 70); err != nil {
		t.Fatal(err)
	}
	want := `
├─ shown.last      float64  0  0 bytes   numpy  published
├─ model           float64  4  32 bytes  numpy
│  ├─ b            2 arrays, 24 bytes
│  │  ├─ weight    float64  1  8 bytes   numpy  shared
│  │  └─ bias      float64  2  16 bytes  numpy  also d["b"]
│  └─ a["x"][0].y  float64  3  24 bytes  numpy
├─ main()          2 arrays, 88 bytes
│  ├─ x            float64  5  40 bytes  numpy
│  └─ y[2]         float64  6  48 bytes  numpy
├─ not a name!     float64  7  56 bytes  numpy
├─ evil\x1b[31m    no memory
└─ many            20 arrays, 160 bytes
`
	var many strings.Builder
	for i := range enoughSiblings {
		fmt.Fprintf(&many, "   ├─ %-11s  float64  1  8 bytes\n", fmt.Sprintf("[%d]", i))
	}
	want += many.String() + "   └─ ... 8 more   8 arrays, 64 bytes\n"
	if got := "\n" + b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b.Reset()
	if err := writeRows(&b, treeOf("p", contract.Found{Entries: entries}).rows(""), 20); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 20 {
			t.Errorf("%q has %d characters", line, n)
		}
	}
	if line := "│  │  ├─ weight  fl…\n"; !strings.Contains(b.String(), line) {
		t.Errorf("%q is not in\n%s", line, b.String())
	}
}

// TestTreeOfModel: on a terminal ls shows the parts of a model in its order, and the processes that come from the program.
func TestTreeOfModel(t *testing.T) {
	t.Parallel()
	script := file(t, t.TempDir(), "model.py", `
import os, time, types
import numpy as np

class Part:
    __slots__ = ("weight",)

model = types.SimpleNamespace(second=Part(), first={"b": np.ones(2), "a": np.ones(3)})
model.second.weight = np.ones(1)

def train():
    batch = [np.ones(4), np.ones(5)]
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
    time.sleep(60)

train()
`)
	text := ""
	for patience := time.Second; patience < time.Minute && !strings.Contains(text, "process"); patience *= 2 { // until train has forked
		text = onTerminal(t, nil, "ls", "--script", script, "--python", python(t), "--patience", patience.String())
	}
	rest := text
	for _, line := range []string{
		"model ", "5 arrays, 120 bytes\r\n",
		"├─ model ", "3 arrays, 48 bytes\r\n",
		"│  ├─ second.weight  float64  1  8 bytes   numpy  copied: below-threshold\r\n",
		"│  └─ first ", "2 arrays, 40 bytes\r\n",
		`│     ├─ ["b"]       float64  2  16 bytes  numpy  copied: below-threshold`,
		`│     └─ ["a"]       float64  3  24 bytes  numpy  copied: below-threshold`,
		"└─ train().batch ",
		"   ├─ [0]            float64  4  32 bytes  numpy",
		"   └─ [1] ",
		"process ", "ndbridge ls --attach ",
	} {
		_, after, ok := strings.Cut(rest, line)
		if !ok {
			t.Fatalf("%q is not, or not there, in\n%s", line, text)
		}
		rest = after
	}
}

// TestListOfALongName: a name that is long does not push the others' columns apart.
func TestListOfALongName(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "long.py")
	text := `
import numpy as np
a, d, z = np.ones(2), {"x" * 3000: np.ones(3)}, np.ones(4)
`
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := command(t, "ls", "--script", script, "--python", python(t), "--deep", "--patience", "1m")
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if got.status != 0 || len(lines) != 3 || len(lines[0]) > 100 || len(lines[2]) > 100 || !strings.HasPrefix(lines[1], `d["xxx`) || !strings.Contains(lines[1], "  numpy  float64  3  ") {
		t.Errorf("status %d, %s\n%s", got.status, got.stderr, got.stdout)
	}
}

// TestTreeOfNumbers has numbers among arrays, and alone.
func TestTreeOfNumbers(t *testing.T) {
	t.Parallel()
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float64, Shape: []int{3}})
	if err != nil {
		t.Fatal(err)
	}
	top := treeOf("p", contract.Found{
		Entries: []contract.Entry{{Name: "m.w", Framework: "numpy", Layout: l}},
		Numbers: []contract.Number{{Name: "m.lr", Value: 0.5}, {Name: "d[0]", Value: math.Inf(1)}, {Name: "d[1]", Whole: true, Int: -7}, {Name: "main().step", Whole: true}},
	})
	var b strings.Builder
	if err := writeRows(&b, append([]row{{"p", top.columns()}}, top.rows("")...), 70); err != nil {
		t.Fatal(err)
	}
	if got, want := "\n"+b.String(), `
p               1 array, 24 bytes, 4 numbers
├─ m            1 array, 24 bytes, 1 number
│  ├─ w         float64  3  24 bytes  numpy
│  └─ lr        float    0.5
├─ d            2 numbers
│  ├─ [0]       float    inf
│  └─ [1]       int      -7
└─ main().step  int      0
`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
