// Package model compares what a host sees with what the program itself says of its arrays, step by step, over
// sequences of random operations that nobody has thought of.
//
// A program (testdata/model.py) runs steps: statements of Python, each of which makes, changes, renames or drops
// arrays. After some of them it says what each of its names is. The host looks by every route of the API, keeps
// some of the views, and compares. The same steps run in a second process, without a host, which must do the
// same: the same values, and the same exceptions.
//
// A sequence follows from a seed. One that fails is cut down to the events that it needs and printed as Python.
//
// A second test (race_test.go) does without the steps: the program changes its arrays at full speed, and each
// array says by its contents which one it is.
package model

import (
	"encoding/json"
	"fmt"
)

// saying is what the program says of one array.
type saying struct {
	Shape    []int
	DType    string // as core.DType.String
	Tag      string
	Sum      uint32 // CRC-32 of the elements' bytes in row-major order
	ReadOnly bool   // for the program itself
}

// UnmarshalJSON reads the list that the program writes.
func (s *saying) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&s.Shape, &s.DType, &s.Tag, &s.Sum, &s.ReadOnly})
}

func (s *saying) String() string {
	return fmt.Sprintf("%s%v %s crc %08x", s.DType, s.Shape, s.Tag, s.Sum)
}

// statement is what the program says of one name.
type statement struct {
	Is   *saying
	Err  string // the category of the error that the host must get; "*": any; "?": perhaps any
	Then *struct {
		Is    *saying // what was published, with the values that its memory has now
		Moved bool    // the object has other memory by now
		Fixed bool    // which is shown only when it is published again
	}
	Version uint64 // of what is published under the name; 0: nothing is
	Serial  uint64 // how often anything had been published by then

	// A look publishes an object anew whose memory or shape is another one by now: such versions only the host has.
	Rebound   bool // perhaps since the program has published it
	Uncounted bool // perhaps before
}

// watched is what the program says a kept view shows.
type watched struct {
	State  string // "live" or "kept"
	Sum    uint32
	Forked []uint32 // what it showed at forks, one of which it may show until it is live again
}

// UnmarshalJSON reads the list that the program writes.
func (w *watched) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&w.State, &w.Sum, &w.Forked})
}

// hello is the first thing that a program says.
type hello struct {
	Weights   map[string]float64 // how often each operation is to be chosen
	Paths     []string           // every name that a step can make
	Published []string
	Derived   []string // of the paths: what is computed from what others lead to
}

// request is one message to a program.
type request struct {
	Reset bool  `json:"reset,omitempty"`
	Drop  []int `json:"drop,omitempty"`
	Watch []any `json:"watch,omitempty"` // [number of a kept view, name, route]
	Poke  []any `json:"poke,omitempty"`  // [number of a kept view, offset, byte]
	Steps []any `json:"steps,omitempty"` // [operation, seed]
	Alone bool  `json:"alone"`           // no host has written what is to be poked
}

// answer is what follows a request.
type answer struct {
	Log   [][]string // statement and outcome of each step; nil for one that did nothing
	State map[string]*statement
	Watch map[int]*watched
}
