package e2e

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestCallsMakeArraysOfFrameworks: an argument becomes what the annotation says, or the host, or the callable itself.
func TestCallsMakeArraysOfFrameworks(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import functools, typing, numpy as np, torch, jax, remote
def usual(x): return type(x).__module__
def tensor(x: torch.Tensor): return type(x).__module__
def text(x: "torch.Tensor"): return type(x).__module__
def union(x: typing.Optional[jax.Array] = None): return type(x).__module__
@torch.no_grad()
def decorated(x: torch.Tensor): return type(x).__module__
def either(x: "None | torch.Tensor"): return type(x).__module__
def named(a, *, x: torch.Tensor): return type(x).__module__
def rest(a: np.ndarray, *xs: torch.Tensor, **kw: jax.Array):
    return [type(a).__module__, *(type(x).__module__ for x in xs), *(type(x).__module__ for x in kw.values())]
class Method:
    def take(self, n, x: torch.Tensor): return type(x).__module__
part, bound = functools.partial(named, 1), functools.partial(Method().take, 1)
def double(x: torch.Tensor):
    x += 1
    return 2 * x
class Model(torch.nn.Module):
    def forward(self, x): return x.sum().reshape(1)
model = Model()
def tensors(n):
    t = torch.arange(8) + n
    parts = [torch.ones(8), t.to(torch.int8), t.to(torch.uint8).view(torch.uint4), t.to(torch.uint8), t[::2], t.reshape(2, 4).T, t[:0], t.reshape(8, 1), t[0], t.expand(3, 8), torch.nn.Parameter(t.float()), torch.from_numpy(np.arange(8) + n)]
    types = [torch.bool, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.complex64]
    return parts + [t.to(x) for x in types] + [torch.arange(1 << 15) + n, torch.from_numpy(np.arange(1 << 15) + n)] # whose memory nobody else keeps
def packed(): return {"a": [jax.numpy.ones(3, jax.numpy.int4)]}
remote.serve()
`, harness.Options{Python: harness.PythonAll(t)})
	v := array(t, run, core.Float32, 1<<15)
	for name, want := range map[string]string{"usual": "numpy", "tensor": "torch", "text": "torch", "decorated": "torch", "either": "torch", "union": "jaxlib._jax"} {
		if got := value(t, fn(t, run, name), v); got != want {
			t.Errorf("%s got an array of %v, want %s", name, got, want)
		}
	}
	if got, want := value(t, fn(t, run, "rest"), v, v, v, hostplugin.Kw{"z": v}), []any{"numpy", "torch", "torch", "jaxlib._jax"}; !reflect.DeepEqual(got, want) {
		t.Errorf("rest got arrays of %v, want %v", got, want)
	}
	if got := value(t, fn(t, run, "part"), hostplugin.Kw{"x": v}); got != "torch" {
		t.Errorf("a keyword argument of a part was an array of %v, want torch", got)
	}
	if got := value(t, fn(t, run, "bound"), v); got != "torch" {
		t.Errorf("the argument of a part of a method was an array of %v, want torch", got)
	}
	if _, err := run.Func(t.Context(), "usual", hostplugin.As("pytorch")); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "numpy") {
		t.Errorf("as pytorch = %v", err)
	}
	fails(t, fn(t, run, "packed"), core.ErrDType, `result["a"][0]: `)
	fails(t, fn(t, run, "packed"), core.ErrDType, `publish result["a"][0].astype(`)
	if got := value(t, fn(t, run, "named"), 1, hostplugin.Kw{"x": v}); got != "torch" {
		t.Errorf("a keyword argument was an array of %v, want torch", got)
	}
	if got := value(t, fn(t, run, "usual", hostplugin.As("torch")), v); got != "torch" {
		t.Errorf("as torch, usual got an array of %v", got)
	}
	sameEachTime(t, fn(t, run, "tensors"), 19, func(i int, views []*core.View) (err error) {
		if views[1].DType() != core.Int8 || views[2].Layout().Tag() != "uint4" || views[3].DType() != core.Uint8 { // which DLPack does not tell apart
			err = fmt.Errorf("%v, %q, %v", views[1].DType(), views[2].Layout().Tag(), views[3].DType())
		}
		for _, v := range views[len(views)-2:] {
			x, failed := core.At[int64](v, 1<<15-1)
			err = errors.Join(err, failed, isValue(x, 1<<15-1+int64(i)))
		}
		return err
	})
	r := call(t, fn(t, run, "double"), v)
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		run.NoLeases(t)
	}()
	if x := slice[float32](t, r.View())[9]; x != 2 || r.View().Framework() != "torch" || slice[float32](t, v)[9] != 1 {
		t.Errorf("double gave %v of %s, and the view shows %v", x, r.View().Framework(), slice[float32](t, v)[9])
	}
	m := call(t, fn(t, run, "model"), v)
	if x, err := core.At[float32](m.View(), 0); err != nil || x != 1<<15 {
		t.Errorf("the model gave %v, %v", x, err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestArgumentsOfAProgram: the configuration says whose arrays arguments become that neither the function nor the host says it of.
func TestArgumentsOfAProgram(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, torch, remote
def module(x): return type(x).__module__
usual = module
def annotated(x: np.ndarray, y): return [module(x), module(y)]
def written(x): return x.add_(1)
remote.serve()
`, harness.Options{Python: harness.PythonAll(t), Configs: []func(*hostplugin.Config){
		func(c *hostplugin.Config) { c.Programs[0].Arguments = "torch" },
	}})
	v := array(t, run, core.Float32, 1<<15)
	if got := value(t, fn(t, run, "usual"), v); got != "torch" {
		t.Errorf("an argument was an array of %v, want torch", got)
	}
	if got := value(t, fn(t, run, "usual"), []any{1, v}); got != "builtins" {
		t.Errorf("a list was one of %v", got)
	}
	if got, want := value(t, fn(t, run, "annotated"), v, v), []any{"numpy", "torch"}; !reflect.DeepEqual(got, want) {
		t.Errorf("annotated got arrays of %v, want %v", got, want)
	}
	if got := value(t, fn(t, run, "usual", hostplugin.As("numpy")), v); got != "numpy" {
		t.Errorf("with As, an argument was an array of %v, want numpy", got)
	}
	call(t, fn(t, run, "written"), v)
	if x := slice[float32](t, v); x[9] != 1 {
		t.Errorf("what the function wrote is %v", x[9])
	}
	for as, want := range map[string]string{"": "torch", "numpy": "numpy"} {
		var opts []hostplugin.FuncOption
		if as != "" {
			opts = append(opts, hostplugin.As(as))
		}
		if err := run.Set(t.Context(), "given", v, opts...); err != nil {
			t.Fatal(err)
		}
		if got := harness.Eval[string](t, run.Remote, "module(given)"); got != want {
			t.Errorf("what was set is an array of %v, want %s", got, want)
		}
	}
}

// TestArgumentsThatNobodyTakes: what the configuration says wrongly is an error of each function.
func TestArgumentsThatNobodyTakes(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, "import remote\ndef f(x): pass\nremote.serve()\n", harness.Options{Configs: []func(*hostplugin.Config){
		func(c *hostplugin.Config) { c.Programs[0].Arguments = "torhc" },
	}})
	cannotFind(t, run, "f", core.ErrConfig, `no arrays of "torhc" can be made of a host's memory; one of: `)
}
