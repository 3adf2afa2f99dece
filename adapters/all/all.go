// Package all lists the adapters that come with ndbridge. The default plugin holds them all.
package all

import (
	"github.com/ndbridge/ndbridge/adapters/cudacore"
	"github.com/ndbridge/ndbridge/adapters/cupy"
	"github.com/ndbridge/ndbridge/adapters/dali"
	"github.com/ndbridge/ndbridge/adapters/jax"
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/numba"
	"github.com/ndbridge/ndbridge/adapters/numpy"
	"github.com/ndbridge/ndbridge/adapters/pyarrow"
	"github.com/ndbridge/ndbridge/adapters/pycuda"
	"github.com/ndbridge/ndbridge/adapters/tensorflow"
	"github.com/ndbridge/ndbridge/adapters/torch"
	"github.com/ndbridge/ndbridge/adapters/warp"
)

// Adapters makes one adapter of each kind. Numba comes before NumPy, whose arrays some of its own are too.
func Adapters() []program.Adapter {
	return []program.Adapter{
		numba.New(), numpy.New(), torch.New(), jax.New(), cupy.New(), pycuda.New(), cudacore.New(),
		warp.New(), dali.New(), tensorflow.New(), pyarrow.New(),
	}
}
