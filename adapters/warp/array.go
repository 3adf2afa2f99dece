package warp

import (
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// gathered are the classes whose elements come from several places.
func gathered(class string) bool {
	return slices.Contains([]string{"indexedarray", "fabricarray", "indexedfabricarray"}, class)
}

// classOf gives the class of Warp's that o is of, without its module, which has changed; or "" if o is
// none of its arrays.
func classOf(g *py.GIL, o py.Object) string {
	for _, name := range g.MRO(o) {
		module, class := split(name)
		if top, _, _ := strings.Cut(module, "."); top == "warp" && (class == "array" || gathered(class)) {
			return class
		}
	}
	return ""
}

func split(name string) (module, class string) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], name[i+1:]
}

// array holds the facts about one object on which quirks depend.
type array struct {
	class  string // "array"
	onCPU  bool   // in the CPU's memory
	dtype  string // the name of the element type: "float32", "vec3f"
	fields bool   // elements are structures
}

func look(g *py.GIL, o py.Object) (*array, error) {
	a := &array{class: classOf(g, o)}
	if gathered(a.class) {
		return a, nil
	}
	device, err := g.Attr(o, "device")
	if err != nil {
		return nil, err
	}
	cpu, err := g.Attr(device, "is_cpu")
	if err != nil {
		return nil, err
	}
	if a.onCPU, err = g.Bool(cpu); err != nil {
		return nil, err
	}
	dtype, err := g.Attr(o, "dtype")
	if err != nil {
		return nil, err
	}
	_, class := split(g.TypeName(dtype))
	a.fields = class == "Struct"
	name := "__name__"
	if a.fields {
		name = "key"
	}
	text, err := g.Attr(dtype, name)
	if err != nil {
		return nil, err
	}
	a.dtype, err = g.Text(text)
	return a, err
}

// byInterface puts the array interface in DLPack's place: on a GPU it is the CUDA one.
func byInterface(p *program.Plan, a *array) {
	p.Protocols = []program.Protocol{program.CUDAInterface}
	if a.onCPU {
		p.Protocols = []program.Protocol{program.ArrayInterface}
	}
}
