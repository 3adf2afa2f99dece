package cuda

import (
	"fmt"
	"math"

	"github.com/ndbridge/ndbridge/core"
)

// scalar returns the bytes of a kernel's argument, in the low bytes of a word, and their number.
func scalar(arg any) (word uint64, size int, err error) {
	switch x := arg.(type) {
	case bool:
		if x {
			word = 1
		}
		return word, 1, nil
	case int8:
		return uint64(uint8(x)), 1, nil
	case uint8:
		return uint64(x), 1, nil
	case int16:
		return uint64(uint16(x)), 2, nil
	case uint16:
		return uint64(x), 2, nil
	case core.F16:
		return uint64(x), 2, nil
	case core.BF16:
		return uint64(x), 2, nil
	case int32:
		return uint64(uint32(x)), 4, nil
	case uint32:
		return uint64(x), 4, nil
	case float32:
		return uint64(math.Float32bits(x)), 4, nil
	case int64:
		return uint64(x), 8, nil
	case uint64:
		return x, 8, nil
	case uintptr:
		return uint64(x), 8, nil
	case float64:
		return math.Float64bits(x), 8, nil
	case complex64:
		return uint64(math.Float32bits(imag(x)))<<32 | uint64(math.Float32bits(real(x))), 8, nil
	case int, uint:
		return 0, 0, &core.Error{
			Kind: core.ErrConfig, Err: fmt.Errorf("%T has no fixed size", arg),
			Remedy: "write int32(n) or int64(n), as the kernel declares it",
		}
	default:
		return 0, 0, &core.Error{
			Kind: core.ErrConfig, Err: fmt.Errorf("a %T is neither a *core.View nor a scalar", arg),
			Remedy: "pass views and scalars of fixed size",
		}
	}
}
