package dlpack_test

import (
	"encoding/binary"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/dlpack"
)

// A DLManagedTensor as a capsule named "dltensor" points to it, here copied from elsewhere.
func Example() {
	const base, data = 0x1000, 0x7f0000000000
	le := binary.LittleEndian
	b := le.AppendUint64(nil, data)     // data
	b = le.AppendUint32(b, 1)           // device.device_type: kDLCPU
	b = le.AppendUint32(b, 0)           // device.device_id
	b = le.AppendUint32(b, 2)           // ndim
	b = append(b, 2, 32)                // dtype.code: kDLFloat, dtype.bits
	b = le.AppendUint16(b, 1)           // dtype.lanes
	b = le.AppendUint64(b, base+64)     // shape
	b = le.AppendUint64(b, 0)           // strides: NULL, so row-major
	b = le.AppendUint64(b, 16)          // byte_offset
	b = append(b, make([]byte, 2*8)...) // manager_ctx, deleter
	b = le.AppendUint64(b, 480)         // shape[0]
	b = le.AppendUint64(b, 640)         // shape[1]

	kind, ok := dlpack.KindOf("dltensor")
	m, err := dlpack.Inspect(dlpack.Image(base, b), base, kind)
	if err != nil || !ok {
		fmt.Println(err)
		return
	}
	t, err := m.Tensor()
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := core.NewLayout(t.Spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v on %v, strides %v, at %#x\n", l, l.Device(), l.Strides(), t.Addr)
	// Output: float32[480 640] on cpu, strides [2560 4], at 0x7f0000000010
}
