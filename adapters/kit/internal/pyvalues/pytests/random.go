package main

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core/contract"
)

// random makes a value, and what it is as an expression of Python's. The same seed gives the same.
func random(seed uint64) (v any, expression string) {
	m := maker{rand.New(rand.NewPCG(seed, 1))}
	return m.value(4)
}

type maker struct{ *rand.Rand }

// value makes a value with at most that many containers in each other.
func (m maker) value(deep int) (any, string) {
	kind := m.IntN(14)
	if deep == 0 {
		kind %= 8
	}
	switch kind {
	default:
		return m.scalar(kind)
	case 8:
		return m.items(deep, "[", "]", func(v []any) any { return v })
	case 9:
		return m.items(deep, "(", ",)", func(v []any) any { return contract.Tuple(v) })
	case 10:
		return m.set("{%s}", "set()", func(v []any) any { return contract.Set(v) })
	case 11:
		return m.set("frozenset([%s])", "frozenset()", func(v []any) any { return contract.FrozenSet(v) })
	case 12, 13:
		return m.dict(deep)
	}
}

func (m maker) scalar(kind int) (any, string) {
	switch kind {
	case 0:
		return nil, "None"
	case 1:
		return true, "True"
	case 2:
		v := int64(m.Uint64()) >> m.IntN(64)
		return v, strconv.FormatInt(v, 10)
	case 3:
		v := new(big.Int).Lsh(big.NewInt(m.Int64N(1<<62)|1<<62), uint(2+m.IntN(200)))
		if m.IntN(2) == 0 {
			v.Neg(v)
		}
		return v, v.String()
	case 4:
		return m.float()
	case 5:
		re, a := m.float()
		im, b := m.float()
		return complex(re, im), "complex(" + a + ", " + b + ")"
	case 6:
		s := m.text()
		return s, quote(s)
	default:
		b := make([]byte, m.size())
		for i := range b {
			b[i] = byte(m.Uint32())
		}
		return b, fmt.Sprintf("bytes.fromhex('%x')", b)
	}
}

func (m maker) float() (float64, string) {
	switch m.IntN(8) {
	case 0:
		return math.Inf(1), "float('inf')"
	case 1:
		return math.Copysign(0, -1), "-0.0"
	default:
		v := math.Ldexp(m.NormFloat64(), m.IntN(100)-50)
		return v, "float.fromhex('" + strconv.FormatFloat(v, 'x', -1, 64) + "')"
	}
}

func (m maker) text() string {
	var b strings.Builder
	for range m.size() {
		b.WriteRune([]rune{'a', 0, '\'', '\\', '\n', 'é', '€', '\U0001f600', 0x7f, 0xffff, 0x10ffff}[m.IntN(11)])
	}
	return b.String()
}

func quote(s string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, "\\U%08x", r)
	}
	return "'" + b.String() + "'"
}

// size is that of a container: seldom a large one.
func (m maker) size() int {
	if m.IntN(30) == 0 {
		return m.IntN(300)
	}
	return m.IntN(6)
}

func (m maker) items(deep int, open, end string, as func([]any) any) (any, string) {
	v, texts := make([]any, m.size()), []string{}
	for i := range v {
		item, text := m.value(deep - 1)
		v[i], texts = item, append(texts, text)
	}
	if len(v) == 0 {
		end = end[len(end)-1:]
	}
	return as(v), open + strings.Join(texts, ", ") + end
}

// keys makes keys that are not equal to each other.
func (m maker) keys() (v []any, texts []string) {
	n := int64(m.size())
	for i := range n {
		switch m.IntN(4) {
		case 0:
			v, texts = append(v, i), append(texts, strconv.FormatInt(i, 10))
		case 1:
			v, texts = append(v, float64(i)+.5), append(texts, fmt.Sprintf("%d.5", i))
		default:
			s := m.text() + strconv.FormatInt(i, 10)
			v, texts = append(v, s), append(texts, quote(s))
		}
	}
	return v, texts
}

func (m maker) set(format, empty string, as func([]any) any) (any, string) {
	v, texts := m.keys()
	if len(v) == 0 {
		return as([]any{}), empty
	}
	return as(v), fmt.Sprintf(format, strings.Join(texts, ", "))
}

// dict makes a dict, in any form that Go has for it.
func (m maker) dict(deep int) (any, string) {
	keys, texts := m.keys()
	tuples := m.IntN(2) == 0 && len(keys) > 0
	pairs, all, text := contract.Dict{}, map[any]any{}, map[string]any{}
	for i, k := range keys {
		v, expression := m.value(deep - 1)
		if tuples {
			k, texts[i] = contract.Tuple{k}, "("+texts[i]+",)"
		} else {
			all[k] = v
			if s, ok := k.(string); ok {
				text[s] = v
			}
		}
		pairs, texts[i] = append(pairs, contract.Pair{Key: k, Value: v}), texts[i]+": "+expression
	}
	expression := "{" + strings.Join(texts, ", ") + "}"
	switch {
	case tuples:
		return pairs, expression
	case len(text) == len(keys):
		return text, expression
	default:
		return all, expression
	}
}

// sorted gives a value in which all sets are in one order.
func sorted(v any) any {
	order := func(items []any) []any {
		items = slices.Clone(items)
		slices.SortFunc(items, func(a, b any) int { return strings.Compare(fmt.Sprintf("%T %v", a, a), fmt.Sprintf("%T %v", b, b)) })
		return items
	}
	each := func(items []any) []any {
		out := make([]any, len(items))
		for i, item := range items {
			out[i] = sorted(item)
		}
		return out
	}
	switch v := v.(type) {
	case contract.Set:
		return contract.Set(order(v))
	case contract.FrozenSet:
		return contract.FrozenSet(order(v))
	case []any:
		return each(v)
	case contract.Tuple:
		return contract.Tuple(each(v))
	case contract.Dict:
		out := make(contract.Dict, len(v))
		for i, p := range v {
			out[i] = contract.Pair{Key: p.Key, Value: sorted(p.Value)}
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[k] = sorted(item)
		}
		return out
	case map[any]any:
		out := make(map[any]any, len(v))
		for k, item := range v {
			out[k] = sorted(item)
		}
		return out
	default:
		return v
	}
}
