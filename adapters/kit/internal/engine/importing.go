package engine

import (
	"fmt"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// Python is the framework of those who have none: its arrays are memoryviews, and on a GPU the host arrays themselves.
const Python = "python"

// Import makes the array of a framework, which the program has loaded, of a host array with this layout; see [program.Importer].
// Errors wrap [core.ErrUnsupported] if the framework is not there, or takes no memory of others, and [core.ErrDType],
// [core.ErrLayout] or [core.ErrPython] if it does not take this array.
func (p *Program) Import(
	g *py.GIL, framework string, exporter py.Object, l core.Layout, readOnly bool,
) (py.Object, error) {
	o, err := p.importArray(g, framework, exporter, l, readOnly || l.ReadOnly())
	return o, about("import", "", framework, err)
}

func (p *Program) importArray(
	g *py.GIL, framework string, exporter py.Object, l core.Layout, readOnly bool,
) (py.Object, error) {
	if framework == Python && l.Device().Kind == core.CUDA {
		return exporter, nil
	}
	if framework == Python {
		builtins, err := g.Import("builtins")
		if err != nil {
			return 0, err
		}
		return g.CallMethod(builtins, "memoryview", []py.Object{exporter}, nil)
	}
	for _, f := range p.frameworks {
		if f.name != framework {
			continue
		}
		importer, ok := f.adapter.(program.Importer)
		if !ok {
			return 0, &core.Error{Kind: core.ErrUnsupported, Err: fmt.Errorf("%s takes no memory of a host", framework)}
		}
		env, ok, err := p.env(g, f)
		if err != nil {
			return 0, err
		}
		if !ok {
			return 0, &core.Error{
				Kind: core.ErrUnsupported, Err: fmt.Errorf("the program has not imported %s", framework),
				Remedy: "import it in the program",
			}
		}
		o, err := importer.Import(g, env, exporter, l, readOnly)
		if l.DType().Opaque() && py.Raised(err, "BufferError") {
			err = &core.Error{
				Kind: core.ErrDType, Err: fmt.Errorf("%s has no elements of %v", framework, l),
				Remedy: "hand over numbers that it has, or let the parameter be a numpy.ndarray",
			}
		}
		return o, err
	}
	return 0, &core.Error{Kind: core.ErrUnsupported, Err: fmt.Errorf("the plugin has no adapter %q", framework)}
}
