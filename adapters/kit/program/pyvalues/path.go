package pyvalues

import (
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/internal/values"
)

// path says where p is: `["a"][3].x`. It runs no code of the program's.
func path(g *py.GIL, p *py.Plain) string {
	var b strings.Builder
	for s := range p.Place() {
		switch s.Kind {
		case py.PieceRecord:
			if name, err := g.Text(s.Key); s.Key != 0 && err == nil {
				b.WriteString("." + name)
			}
		case py.PieceDict:
			b.WriteString(key(g, s.Key))
		case py.PieceSet, py.PieceFrozenSet:
			b.WriteString("{...}")
		default:
			b.WriteString(values.Index(s.Index))
		}
	}
	return b.String()
}

// key is the step to what is under a key.
func key(g *py.GIL, o py.Object) string {
	switch {
	case o == 0:
		return "[...]"
	case g.IsNone(o):
		return "[None]"
	case g.IsBool(o):
		return "[" + strconv.FormatBool(o == g.True()) + "]"
	case g.IsStr(o):
		if text, err := g.Text(o); err == nil {
			return values.Key(text)
		}
	case g.IsInt(o):
		if n, err := g.Int64(o); err == nil {
			return "[" + strconv.FormatInt(n, 10) + "]"
		}
	}
	return "[a " + g.TypeName(o) + "]"
}
