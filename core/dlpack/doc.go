// Package dlpack reads tensors that frameworks export by DLPack: the C structs DLManagedTensor (before
// version 1) and DLManagedTensorVersioned, as dlpack.h of version 1.3 lays them out for 64-bit
// machines.
//
// Its functions are pure: they look at memory through a [Memory], follow no pointer that they have not
// checked as far as it can be checked, and neither own nor free anything. The caller takes the struct
// out of its capsule, renames the capsule, and calls the deleter exactly once.
//
//	m, err := dlpack.Inspect(dlpack.Live(), addr, dlpack.Versioned)
//	// the deleter is m.Deleter now, whatever becomes of the rest
//	t, err := m.Tensor()
//	l, err := core.NewLayout(t.Spec)
//
// A version of another major number than 1 may have any fields behind the ones that [Inspect] reads:
// such a tensor can only be given back.
package dlpack

// The names of capsules, of dlpack.h and of the Python specification. A consumer renames the capsule
// when it takes the tensor out, so that the capsule's destructor leaves the tensor alone.
const (
	CapsuleName              = "dltensor"
	CapsuleNameVersioned     = "dltensor_versioned"
	UsedCapsuleName          = "used_dltensor"
	UsedCapsuleNameVersioned = "used_dltensor_versioned"
)

// The version of DLPack that this package reads, and that a consumer asks for with max_version. Later
// minor versions keep the layout and are read too.
const (
	Major = 1
	Minor = 3
)

// Kind says which struct a capsule holds: its name does.
type Kind uint8

// The two structs.
const (
	Legacy    Kind = iota + 1 // DLManagedTensor, in a capsule named "dltensor"
	Versioned                 // DLManagedTensorVersioned, in a capsule named "dltensor_versioned"
)

// KindOf is the struct that an unconsumed capsule of this name holds. A name that is neither, such as
// that of a consumed capsule, gives false.
func KindOf(capsule string) (Kind, bool) {
	switch capsule {
	case CapsuleName:
		return Legacy, true
	case CapsuleNameVersioned:
		return Versioned, true
	default:
		return 0, false
	}
}
