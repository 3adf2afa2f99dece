//go:build cuda

package gpu

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// resultsOnGPU has a function calculate with an array of the host's.
func resultsOnGPU(t *testing.T, c *called, writes bool) {
	x := c.array(t)
	c.call(t, "late_fill", nil, x, 7.0)
	result, err := c.function(t, "twice").Call(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	if d := result.View().Device(); d != gpu0 {
		t.Errorf("the result is on %v", d)
	}
	all(t, "a result", contents(t, result.View()), 14)
	y := c.array(t)
	_, err = c.function(t, "twice").Call(t.Context(), x, hostplugin.Out(y))
	switch {
	case writes && err != nil || !writes && !errors.Is(err, core.ErrUnsupported):
		t.Errorf("a result in the host's memory: %v", err)
	case writes:
		all(t, "a result in the host's memory", contents(t, y), 14)
	}
	if err := result.Close(); err != nil {
		t.Fatal(err)
	}
}

// lateResult has a function return the array that the program keeps, which is written when the function has returned.
func lateResult(t *testing.T, c *called) {
	result, err := c.function(t, "late_kept").Call(t.Context(), c.array(t), 8.0)
	if err != nil {
		t.Fatal(err)
	}
	all(t, "a result that is written late", contents(t, result.View()), 8)
	if err := result.Close(); err != nil {
		t.Fatal(err)
	}
}

// brokenResult has a function return an array, and the GPU fail when the host knows of it: that is the end of the call all the same.
func brokenResult(t *testing.T, f framework, as string) {
	c := &called{run: start(t, f.name, nil), as: as}
	c.run.Remote.Exec(t, fmt.Sprintf("import called; make('a', %q, 1); called.kept.append(a)", f.kinds[0].name))
	result, err := c.function(t, "broken_kept").Call(t.Context(), c.array(t))
	if !errors.Is(err, core.ErrUnavailable) {
		t.Fatalf("a call whose work has failed: %v, %v; want ErrUnavailable", result, err)
	}
	c.run.NoLeases(t)
}
