package contract

// Tuple is a tuple of Python's.
type Tuple []any

// Set is a set of Python's, in any order.
type Set []any

// FrozenSet is a frozenset of Python's, in any order.
type FrozenSet []any

// Dict is a dict of Python's in its order, with keys of any kind: also those that no map of Go's can have, such as
// tuples and bytes.
type Dict []Pair

// Pair is a key of a [Dict] and what it leads to.
type Pair struct{ Key, Value any }

// Record is an instance of a dataclass, or a named tuple. In the other direction it becomes a dict.
type Record struct {
	Type   string // the qualified name of its class: "shapes.Point"
	Fields []Field
}

// Field is a field of a [Record].
type Field struct {
	Name  string
	Value any
}
