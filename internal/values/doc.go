// Package values is the form in which plain values cross between a host and a Python program: numbers, text,
// lists, dicts and what else both sides have. docs/PROTOCOL.md describes the form byte by byte. It is a subset
// of CBOR (RFC 8949) in which each value has one form only, apart from the order of dicts and sets.
//
// [Append] and [Decode] go between the form and Go's values by reflection; [Value] gives what is there without
// being told. [Writer] and [Reader] are the form itself, a token at a time: on the program's side the package
// pyvalues stands on them.
//
// Arrays are not part of the form. They travel beside it, and the form has their numbers.
package values

// MaxDepth is how deep lists, tuples, sets, dicts and records may lie in each other.
const MaxDepth = 100

// MaxSize is how large a form can be, in bytes. A value that has one list in itself many times is small, and its form is
// not.
const MaxSize = 1 << 30

// The major types of CBOR, as they stand in the first byte of an item.
const (
	majorUint   = 0 << 5
	majorNegint = 1 << 5
	majorBytes  = 2 << 5
	majorText   = 3 << 5
	majorArray  = 4 << 5
	majorMap    = 5 << 5
	majorTag    = 6 << 5
	majorOther  = 7 << 5
)

// The items of the last major type that the form has.
const (
	byteFalse = majorOther | 20
	byteTrue  = majorOther | 21
	byteNull  = majorOther | 22
	byteFloat = majorOther | 27 // 64 bits follow
)

// The tags of the form. Those up to 258, and 43000, are registered for what they are used for here.
const (
	tagBig       = 2     // bytes: an integer of more than 64 bits
	tagNegBig    = 3     // bytes n: the integer -1 - n
	tagRecord    = 27    // [type, {name: value}]
	tagSet       = 258   // [item...]
	tagTuple     = 28260 // [item...]
	tagFrozenSet = 28261 // [item...]
	tagArray     = 28262 // the number of an array
	tagComplex   = 43000 // [real, imaginary]
)
