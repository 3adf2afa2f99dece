package e2e

import (
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// again is a program that changes what a name means, or is.
type again struct {
	python string // of the frameworks
	setup  string
	moves  []string // statements, each of which may make another array of x, or something else
}

// The frameworks. Each move is made while a view of what x was before stands, so that the program could
// take it for what it was.
func cases(t *testing.T) map[string]again {
	t.Helper()
	return map[string]again{
		"numpy": {
			python: harness.Python(t),
			setup: `
import numpy as np
class Sub(np.ndarray): pass
pair = np.arange(1 << 18, dtype="f4")
`,
			moves: []string{
				`x = np.arange(1 << 17, dtype="f8")`,
				`x = np.arange(1 << 17, dtype="f8") + 1`,
				`x[5] = 99`,
				`y = x; x = x.copy(); y[:] = 7`,
				`del y`,
				`x = x[::-1]`,
				`x = x[::2]`,
				`x = x.base[1:]`,
				`x = np.arange(1 << 17, dtype="f8")`,
				`x.shape = (2, 1 << 16)`,
				`x = x.T`,
				`x = x.T[1]`,
				`x = np.arange(1 << 17, dtype="f8")`,
				`x.flags.writeable = False`,
				`x.flags.writeable = True`,
				`x.resize((1 << 16,), refcheck=False)`,
				`x.resize((1 << 17,), refcheck=False)`,
				`x = x.view("i8")`,
				`x = x.view(">i8")`,
				`x = x.view("M8[s]")`,
				`x = x.view([("a", "f4"), ("b", "i4")])`,
				`x = x.view([("a", "i4"), ("b", "f4")])`,
				`x = x["a"]`,
				`x = np.arange(1 << 17, dtype="f8").view(Sub)`,
				`x = x.view(np.ndarray)`,
				`x = np.ma.array(x, mask=np.arange(1 << 17) == 3)`,
				`x = x.data`,
				`x = np.broadcast_to(np.arange(1 << 16, dtype="f8"), (2, 1 << 16))`,
				`x = pair.view("c8")`,
				`x = pair.view("c8").real`,
				`x = np.arange(100, dtype="f8")`,
				`x = np.zeros((3, 0))`,
				`x = np.array([None, "a"])`,
				`x = np.float64(3)`,
				`x = [1, 2, 3]`,
				`del x`,
				`x = np.arange(1 << 17, dtype="f8")`,
				`y = x; x = y[: 1 << 16]`,
				`x = y[::2]`,
			},
		},
		"torch": {
			python: harness.PythonAll(t),
			setup: `
import torch
class Sub(torch.Tensor): pass
`,
			moves: []string{
				`x = torch.arange(1 << 18, dtype=torch.float32)`,
				`x = x + 1`,
				`x[5] = 99`,
				`x.requires_grad_()`,
				`x.requires_grad_(False)`,
				`x = torch.nn.Parameter(x)`,
				`x = x.detach()`,
				`x.resize_(1 << 17)`,
				`x.set_(torch.ones(1 << 17))`,
				`x = x.reshape(2, 1 << 16)`,
				`x.t_()`,
				`x = torch._neg_view(x)`,
				`x = torch._neg_view(x)`,
				`x = torch.complex(torch.ones(1 << 17), torch.ones(1 << 17))`,
				`x = x.conj()`,
				`x = x.imag`,
				`x = torch.complex(torch.ones(1 << 17), torch.ones(1 << 17))`,
				`x.data = x.data.conj()`,
				`x.data = x.data.conj()`,
				`x.data = x.data.imag`,
				`x.data = torch._neg_view(x.data)`,
				`x.data = torch._neg_view(x.data)`,
				`x.data = x.data.to(torch.uint8)`,
				`x.data = x.data.view(torch.uint4) if hasattr(torch, "uint4") else x.data`,
				`x, y = torch.ones(1 << 17), torch._neg_view(torch.ones(1 << 17))`,
				`torch.utils.swap_tensors(x, y) if hasattr(torch.utils, "swap_tensors") else None`,
				`torch.utils.swap_tensors(x, y) if hasattr(torch.utils, "swap_tensors") else None`,
				`x = torch.ones(1 << 20, dtype=torch.uint8)`,
				`x = x.view(torch.bool)`,
				`x = x.view(torch.uint8).view(torch.uint4) if hasattr(torch, "uint4") else x`,
				`x = x.view(torch.uint8)`,
				`x = x.view(torch.float8_e5m2)`,
				`x = torch.ones(1 << 18).as_subclass(Sub)`,
				`x = x.as_subclass(torch.Tensor)`,
				`x = x.to_sparse()`,
				`x = torch.ones(1 << 18).expand(2, 1 << 18)`,
				`x = torch._lazy_clone(torch.ones(1 << 18)) if hasattr(torch, "_lazy_clone") else x`,
				`x = torch.ones(1 << 18, device="meta")`,
				`x = torch.empty(0)`,
				`x = torch.ones(10)`,
				`del x`,
				`x = torch.ones(1 << 18)`,
				`x.untyped_storage().resize_(0)`,
			},
		},
		"jax": {
			python: harness.PythonAll(t),
			setup: `
import jax, jax.numpy as jnp
add = jax.jit(lambda a: a + 1, donate_argnums=0)
`,
			moves: []string{
				`x = jnp.arange(1 << 18, dtype="float32")`,
				`x = x + 1`,
				`x = add(x)`,
				`x = x.at[5].set(99)`,
				`y = x; x = add(x)`,
				`x = y`,
				`x = jnp.ones(1 << 18, dtype="bfloat16")`,
				`x.delete()`,
				`x = jnp.ones((2, 1 << 17))`,
				`x = x.T`,
				`x = jnp.ones(10)`,
				`x = jax.random.key(0)`,
				`del x, y`,
				`x = jnp.ones(1 << 18)`,
			},
		},
	}
}

// small makes a program of large arrays, which are shared, one of small arrays, which are copied.
func small(code string) string { return strings.ReplaceAll(code, "<< 1", "<< ") }
