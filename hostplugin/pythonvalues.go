package hostplugin

import "github.com/ndbridge/ndbridge/internal/values"

// Python's containers that Go has no type for, as [Result.Value] gives them. As arguments they become the same in Python.
type (
	Tuple     = values.Tuple     // tuple: a slice
	Set       = values.Set       // set: a slice without an order of its own
	FrozenSet = values.FrozenSet // frozenset: likewise
	Dict      = values.Dict      // a dict with keys that no Go map can have, such as tuples: its pairs in their order
	Pair      = values.Pair      // a key and its value
	Record    = values.Record    // a dataclass or a named tuple: the name of its class, and its fields in their order
	Field     = values.Field     // of a Record
)
