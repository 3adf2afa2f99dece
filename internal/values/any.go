package values

import (
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Value gives the value of a form: nil, bool, int64 or [*big.Int], float64, complex128, string, []byte, []any, [contract.Tuple],
// [contract.Set], [contract.FrozenSet], a dict as below, [contract.Record], or [*core.View], which the function array gives for the number of an
// array. It keeps nothing of b.
//
// A dict becomes a map[string]any if all its keys are text, or else a map[any]any; or a [contract.Dict] if it has keys that no map
// can have, or that a map would not find again: tuples, bytes, ints of more than 64 bits, and what is not a number.
//
// Bytes that are no form are a [*core.Error] with [core.ErrProtocol]. An error of array is returned with the place before
// it. A nil array means that arrays cannot cross.
func Value(b []byte, array func(i int) (*core.View, error)) (any, error) {
	d := decoder{Reader: Reader{b: b}, array: array}
	v, err := d.next()
	if err == nil {
		err = d.End()
	}
	if err != nil {
		return nil, Report("decode", err)
	}
	return v, nil
}

type decoder struct {
	Reader
	array func(i int) (*core.View, error)
}

func (d *decoder) next() (any, error) {
	t, err := d.Next()
	if err != nil {
		return nil, err
	}
	return d.any(&t)
}

// any gives the value that a token begins.
func (d *decoder) any(t *Token) (any, error) {
	switch t.Kind {
	case KindNull:
		return nil, nil //nolint:nilnil // this is None
	case KindBool:
		return t.Int != 0, nil
	case KindInt:
		return t.Int, nil
	case KindBig:
		return t.Big(), nil
	case KindFloat:
		return real(t.Num), nil
	case KindComplex:
		return t.Num, nil
	case KindText:
		return string(t.Bytes), nil
	case KindBytes:
		return append([]byte{}, t.Bytes...), nil
	case KindArray:
		return d.view(t)
	case KindList:
		return d.items(t)
	case KindTuple:
		v, err := d.items(t)
		return contract.Tuple(v), err
	case KindSet:
		v, err := d.items(t)
		return contract.Set(v), err
	case KindFrozenSet:
		v, err := d.items(t)
		return contract.FrozenSet(v), err
	case KindDict:
		pairs, err := d.pairs(t)
		return goMap(pairs), err
	default:
		return d.record(t)
	}
}

func (d *decoder) view(t *Token) (*core.View, error) {
	if d.array == nil {
		return nil, Cannot("an array cannot cross here")
	}
	v, err := d.array(t.N)
	if err != nil {
		return nil, At("", err)
	}
	return v, nil
}

func (d *decoder) items(t *Token) ([]any, error) {
	items := make([]any, t.N)
	for i := range items {
		v, err := d.next()
		if err != nil {
			return nil, At(Index(i), err)
		}
		items[i] = v
	}
	return items, nil
}

func (d *decoder) pairs(t *Token) (contract.Dict, error) {
	pairs := make(contract.Dict, t.N)
	for i := range pairs {
		key, err := d.next()
		if err != nil {
			return nil, err
		}
		value, err := d.next()
		if err != nil {
			return nil, At(step(key), err)
		}
		pairs[i] = contract.Pair{Key: key, Value: value}
	}
	return pairs, nil
}

func (d *decoder) record(t *Token) (contract.Record, error) {
	r := contract.Record{Type: string(t.Bytes), Fields: make([]contract.Field, t.N)}
	for i := range r.Fields {
		name, err := d.Next()
		if err != nil {
			return contract.Record{}, err
		}
		f := contract.Field{Name: string(name.Bytes)}
		if f.Value, err = d.next(); err != nil {
			return contract.Record{}, At("."+f.Name, err)
		}
		r.Fields[i] = f
	}
	return r, nil
}

// goMap makes a map of a dict, if there can be one.
func goMap(pairs contract.Dict) any {
	text := true
	for _, p := range pairs {
		switch p.Key.(type) {
		case string:
		case nil, bool, int64, float64, complex128:
			if p.Key != p.Key { //nolint:gocritic // it is not a number
				return pairs
			}
			text = false
		default:
			return pairs
		}
	}
	if text {
		m := make(map[string]any, len(pairs))
		for _, p := range pairs {
			m[p.Key.(string)] = p.Value //nolint:errcheck // it was looked at
		}
		return m
	}
	m := make(map[any]any, len(pairs))
	for _, p := range pairs {
		m[p.Key] = p.Value
	}
	return m
}
