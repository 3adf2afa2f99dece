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
			b.WriteString("." + text(g, s.Key))
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

// text gives the text of a str, or "" if o is none.
func text(g *py.GIL, o py.Object) string {
	if o == 0 {
		return ""
	}
	s, err := g.Text(o)
	if err != nil {
		return ""
	}
	return s
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
		return values.Key(text(g, o))
	case g.IsInt(o):
		if n, err := g.Int64(o); err == nil {
			return "[" + strconv.FormatInt(n, 10) + "]"
		}
	}
	return "[" + values.A(g.TypeName(o)) + "]"
}
