package values

import (
	"reflect"
	"strings"
	"sync"
)

// tagKey is the key of the tags that name a struct's fields: `python:"name"`, or `python:"-"` for a field that does
// not cross.
const tagKey = "python"

// field is a field of a struct that crosses.
type field struct {
	name  string
	index []int
}

// structFields is what is known of a struct type.
type structFields struct {
	list   []field // in order
	byName map[string]int
	folded map[string]int // fields without a tag, by their names in lower case
}

// known has a *structFields for each struct type that was asked for.
var known sync.Map //nolint:gochecknoglobals // a cache of what never changes

// fieldsOf gives the fields of a struct type by their names in Python: those of structs that it embeds are its own,
// unless the embedded struct has a tag. Of two with the same name, the one that is less deep counts, and then the first.
func fieldsOf(t reflect.Type) *structFields {
	if s, ok := known.Load(t); ok {
		return s.(*structFields) //nolint:errcheck // the only type there
	}
	s := &structFields{byName: make(map[string]int), folded: make(map[string]int)}
	for _, f := range reflect.VisibleFields(t) {
		name, tagged := f.Tag.Lookup(tagKey)
		switch {
		case !f.IsExported() || name == "-" || hidden(t, f.Index):
			continue
		case f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct:
			continue // its fields come on their own
		case name == "":
			name = f.Name
		}
		if at, ok := s.byName[name]; !ok {
			s.byName[name] = len(s.list)
			if lower := strings.ToLower(name); !tagged {
				if _, ok := s.folded[lower]; !ok {
					s.folded[lower] = len(s.list)
				}
			}
			s.list = append(s.list, field{name, f.Index})
		} else if len(f.Index) < len(s.list[at].index) {
			s.list[at].index = f.Index
		}
	}
	known.Store(t, s)
	return s
}

// field gives the number of the field that a key means, and whether the key is its very name.
func (s *structFields) field(key []byte) (at int, exact, ok bool) {
	if at, ok = s.byName[string(key)]; ok {
		return at, true, true
	}
	at, ok = s.folded[strings.ToLower(string(key))]
	return at, false, ok
}

// hidden reports whether a field is one of an embedded struct that is a value of its own: it has a tag, or is a
// pointer.
func hidden(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		f := t.Field(i)
		if _, tagged := f.Tag.Lookup(tagKey); tagged || f.Type.Kind() != reflect.Struct {
			return true
		}
		t = f.Type
	}
	return false
}
