package hostplugin

import (
	"github.com/ndbridge/ndbridge/core/contract"
)

// Tuple is a tuple of Python's, as [Result.Value] gives one. As an argument it becomes one; so do the types below.
type Tuple = contract.Tuple

// Set is a set. Its order says nothing.
type Set = contract.Set

// FrozenSet is a frozenset.
type FrozenSet = contract.FrozenSet

// Dict is a dict with keys that no Go map can have, such as tuples: its pairs in their order.
type Dict = contract.Dict

// Pair is a key and its value.
type Pair = contract.Pair

// Record is a dataclass or a named tuple: the name of its class, and its fields in their order.
type Record = contract.Record

// Field is one of a Record.
type Field = contract.Field
