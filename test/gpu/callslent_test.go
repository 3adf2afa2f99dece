//go:build cuda

package gpu

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// lentArguments gives arrays of one program to functions of another.
func lentArguments(t *testing.T, c *called, f framework) {
	second := c.another(t)
	for _, k := range f.kinds {
		if slices.Contains(k.routes, contract.RouteStaged) {
			continue // host memory, or memory that is copied there
		}
		t.Run(k.name, func(t *testing.T) { lentArgument(t, c, second, f, k) })
	}
	if err := second.run.Close(); err != nil {
		t.Fatal(err)
	}
}

func lentArgument(t *testing.T, c, second *called, f framework, k kind) {
	c.run.Remote.Exec(t, fmt.Sprintf("make('lent', %q, 3)", k.name))
	written := !f.made && !slices.Contains(k.routes, contract.RouteCUDAStaged) // not a copy
	view := func() *core.View {
		t.Helper()
		if written {
			return c.run.View(t, "lent", writable)
		}
		return c.run.View(t, "lent")
	}
	x := view()
	if x.Route() == contract.RouteCUDAPool {
		_, err := second.function(t, "sees").Call(t.Context(), x)
		if e, ok := errors.AsType[*core.Error](err); !errors.Is(err, core.ErrUnsupported) || !ok || e.Remedy == "" {
			t.Errorf("memory of a pool: %v, want ErrUnsupported and a remedy", err)
		}
		return
	}
	second.sees(t, "another program's array", x, 3)
	c.run.Remote.Exec(t, fmt.Sprintf("write_late('lent', %q, 5)", k.name))
	x = view()
	second.sees(t, "what the program is to write", x, 5)
	if written {
		second.call(t, "late_fill", nil, x, 7.0)
		all(t, "behind a call of another program", contents(t, x), 7)
		c.sees(t, "the program itself", x, 7)
		late := c.late(t, x) // of fives
		second.sees(t, "what the host is to write", x, 5)
		late.finish(t)
	}
	readOnly, err := x.AsReadOnly()
	if err != nil {
		t.Fatal(err)
	}
	second.sees(t, "a read-only part", readOnly, 5)
	keeps := 1
	if !written && (c.as == "torch" || c.as == "cupy") { // do not know memory that is read-only, and have got a copy
		keeps = 0
	}
	if n := second.call(t, "keep", nil, x); n != keeps {
		t.Errorf("%d arguments were kept, want %d", n, keeps)
	}
	for _, v := range []*core.View{readOnly, x} {
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c.run.Remote.Exec(t, fmt.Sprintf("del arrays['lent']\nfor i in range(4): make(f'next{i}', %q, 8)", k.name))
	var seen []float32
	if second.call(t, "sees_kept", &seen); seen[0] != 5 || seen[1] != 5 {
		t.Errorf("the argument that was kept has %v, want 5", seen)
	}
	if written {
		second.call(t, "drop_late", nil)
	} else {
		second.call(t, "drop", nil)
	}
	for i := range 4 { // whose memory may have been the argument's
		all(t, "the program's next array", contents(t, c.run.View(t, fmt.Sprintf("next%d", i))), 8)
	}
}
