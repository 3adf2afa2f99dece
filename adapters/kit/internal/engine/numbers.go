package engine

import (
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
)

const (
	// maxTogether is how many numbers an object may have for a search to tell of them. More are data, such as a history or a vocabulary.
	maxTogether = 64
	// maxNumbers bounds how many numbers a search tells of.
	maxNumbers = 10_000
)

// number is one of Python's own that was found.
type number struct {
	contract.Number
	order order
}

// numbers is what a search knows of Python's own numbers.
type numbers struct {
	wanted bool
	asked  []string // only the numbers of these names are wanted, and no arrays
	limit  int
	found  []number
}

func (n *numbers) only() bool { return len(n.asked) > 0 }

// number reads a number, if the pattern means it.
func (s *search) number(g *py.GIL, o py.Object, at place) (n number, ok bool) {
	if rest, ok := ofArray(at.rest); !ok || len(rest) > 0 || len(at.path.Steps) > maxSearchedDepth {
		return number{}, false
	}
	n.order = at.order
	n.Int, n.Value, n.Whole, ok = g.Number(o)
	switch {
	case ok && s.numbers.only():
		n.Name = s.numbers.asked[at.order[0]]
	case ok:
		n.Name = at.path.String()
	}
	return n, ok
}

// count tells of numbers.
func (s *search) count(all ...number) {
	room := min(max(s.numbers.limit-len(s.numbers.found), 0), len(all))
	s.numbers.found = append(s.numbers.found, all[:room]...)
	s.more += len(all) - room
}

// settings reports whether the numbers that an object has are settings, which do not change: those of a layer of a framework, such as
// torch.nn.Conv2d, and of the tuples that it has, and the defaults of functions.
func (s *search) settings(g *py.GIL, o py.Object, at place) bool {
	if n := len(at.path.Steps); n > 0 {
		switch last := at.path.Steps[n-1]; {
		case last.Kind != names.Attr:
		case last.Text == "__defaults__", last.Text == "__kwdefaults__":
			return true
		case s.ofLayer(g, o, at.path):
			return true
		}
	}
	return s.kindOf(g, o) == layer
}

// ofLayer reports whether an object is a tuple that a layer has.
func (s *search) ofLayer(g *py.GIL, o py.Object, path names.Path) bool {
	if g.ExactType(o) != "tuple" {
		return false
	}
	of, ok := s.program.reach(g, path.Front(len(path.Steps)-1))
	return ok && s.kindOf(g, of) == layer
}

// told gives the numbers that were found, in their order.
func (n *numbers) told() (all []contract.Number) {
	slices.SortStableFunc(n.found, func(a, b number) int { return slices.Compare(a.order, b.order) })
	for _, one := range n.found {
		all = append(all, one.Number)
	}
	return all
}
