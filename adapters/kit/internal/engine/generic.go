package engine

import (
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/internal/gpu"
)

// genericName is the adapter's name for objects that no adapter claims.
const genericName = "generic"

// genericPlan reads an object of which nothing is known but what the protocols say. It differs from
// the standards' plan in what no framework minds, and one or another needs:
//   - host arrays only, and no stream: the one thing that all accept for them is to leave it out;
//   - the keywords of DLPack 1 are tried, and left out if they are not known;
//   - DLPack is not spoken from C, since that leaves out what the object's class checks in Python;
//   - one protocol's refusal is not the end;
//   - what cannot say that it is read-only counts as read-only, since writing to an immutable array
//     would corrupt it;
//   - a lease holds what the protocol handed out, since the framework may use the memory again in
//     place;
//   - it is asked twice, since the memory may be that of the answer.
func genericPlan() program.Plan {
	p := program.StandardPlan()
	p.Without(program.Exchange)
	p.AnyProtocol = true
	p.Hold, p.Doubted = true, true
	p.DLPack.Stream = nil
	p.DLPack.Retry = true
	p.DLPack.AskDevice = true
	p.DLPack.UnsignedReadOnly = true
	return p
}

// genericMarks recognises an object that tells of memory of a GPU by nothing but the CUDA Array Interface. The zero value
// says that it is none.
func genericMarks(g *py.GIL, o py.Object) (marks py.Marks) {
	if !gpu.Active() || g.ClassHas(o, "__dlpack__") {
		return marks
	}
	return py.Marks{Class: g.Type(o), Itself: true, Interface: "__cuda_array_interface__"}
}

// standardModules are where Python's own types with memory come from.
var standardModules = []string{"array", "builtins", "ctypes", "_ctypes", "mmap", "multiprocessing"}

// frameworkOf names the framework that an object belongs to: the package that its type, or the type
// that this one is made from, comes from. What the program or Python itself defines is "python".
func frameworkOf(g *py.GIL, o py.Object) string {
	for _, class := range g.MRO(o) {
		module, _, qualified := strings.Cut(class, ".")
		switch {
		case module == "__main__" || module == "__mp_main__":
		case !qualified || slices.Contains(standardModules, module):
			return "python"
		case module == "jaxlib": // where JAX keeps its array type
			return "jax"
		default:
			return module
		}
	}
	return "python"
}

// looksLikeArray reports whether an object of no known framework belongs in a listing: its type has
// an array protocol. Objects that merely have a buffer do not, though they can be named.
func looksLikeArray(g *py.GIL, o py.Object) bool {
	for _, name := range []string{"__dlpack__", "__array_interface__", "__cuda_array_interface__"} {
		if g.ClassHas(o, name) {
			return true
		}
	}
	return false
}
