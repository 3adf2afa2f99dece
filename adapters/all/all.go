// Package all lists the adapters that come with ndbridge. The default plugin holds them all.
package all

import (
	"github.com/ndbridge/ndbridge/adapters/dali"
	"github.com/ndbridge/ndbridge/adapters/jax"
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/numpy"
	"github.com/ndbridge/ndbridge/adapters/pyarrow"
	"github.com/ndbridge/ndbridge/adapters/tensorflow"
	"github.com/ndbridge/ndbridge/adapters/torch"
	"github.com/ndbridge/ndbridge/adapters/warp"
)

// Adapters makes one adapter of each kind.
func Adapters() []program.Adapter {
	return []program.Adapter{
		numpy.New(), torch.New(), jax.New(), warp.New(), dali.New(),
		tensorflow.New(), pyarrow.New(),
	}
}
