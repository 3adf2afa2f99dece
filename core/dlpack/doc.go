// Package dlpack reads tensors that frameworks export by DLPack: the C structs DLManagedTensor (before version 1) and
// DLManagedTensorVersioned, in the layout of dlpack.h 1.3 on 64-bit machines.
//
// Its functions are pure. They look at memory through a [Memory], check every pointer as far as that is possible before
// they follow it, and neither own nor free anything. The caller takes the struct out of its capsule, renames the capsule,
// and calls the deleter exactly once.
//
//	m, err := dlpack.Inspect(dlpack.Live(), addr, dlpack.Versioned)
//	// the deleter is m.Deleter now, whatever becomes of the rest
//	t, err := m.Tensor()
//	l, err := core.NewLayout(t.Spec)
//
// A struct of another major version than 1 may have any fields behind those that [Inspect] reads: the caller can only give
// such a tensor back.
package dlpack

// The names of capsules, from dlpack.h and from the Python specification. A consumer renames the capsule when it takes the
// tensor out, so that the capsule's destructor leaves the tensor alone.
const (
	CapsuleName              = "dltensor"
	CapsuleNameVersioned     = "dltensor_versioned"
	UsedCapsuleName          = "used_dltensor"
	UsedCapsuleNameVersioned = "used_dltensor_versioned"
)

// The version of DLPack that this package reads. A consumer asks for it with max_version. Later minor versions keep the
// layout of the structs, so the package reads them too.
const (
	Major = 1
	Minor = 3
)

// Kind says which struct a capsule holds. The capsule's name tells.
type Kind uint8

// The two structs.
const (
	Legacy    Kind = iota + 1 // DLManagedTensor, in a capsule named "dltensor"
	Versioned                 // DLManagedTensorVersioned, in a capsule named "dltensor_versioned"
)

// KindOf returns the struct that a capsule of this name holds. It returns false for other names, such as that of a
// consumed capsule.
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
