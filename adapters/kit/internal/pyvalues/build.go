// Package pyvalues goes between Python's objects and the form in which plain values cross to a host and back
// (package values).
package pyvalues

import (
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/values"
)

// Build makes the objects of the next value that r has. A record becomes a dict. The function array gives the object of an
// array by its number; it is called for all arrays of the value, in their order, before anything is made. A nil array means
// that arrays cannot cross.
//
// What Python cannot make (a dict with a list as a key) is a [*core.Error] with [core.ErrUnsupported], which says where in
// the value it is. Bytes that are no form are one with [core.ErrProtocol]. An error of array is returned as it is.
func Build(g *py.GIL, r *values.Reader, array func(g *py.GIL, i int) (py.Object, error)) (py.Object, error) {
	plain := g.Plain()
	defer plain.Close()
	b := builder{gil: g, array: array, left: 1, Plain: plain, pieces: plain.Room()}
	o, err := b.build(r)
	return o, values.Report("build", err)
}

type builder struct {
	*py.Plain
	gil    *py.GIL
	array  func(g *py.GIL, i int) (py.Object, error)
	left   int         // items that are to come
	found  []py.Object // the arrays, in their order
	passed int         // how many of them have become pieces
	pieces []py.Piece
}

// build reads the value twice if it is large: the first time for its arrays. To get them may run code of the program's, which
// must not see what is half made.
func (b *builder) build(r *values.Reader) (py.Object, error) {
	start := *r
	n, err := b.fill(r, true)
	if err != nil {
		return 0, err
	}
	if b.left > 0 {
		err = b.scan(r)
		*r, b.left, b.passed = start, 1, 0
		if err == nil {
			n, err = b.fill(r, false)
		}
	}
	for err == nil {
		if fault := b.Make(b.pieces[:n], r.Form()); fault.Kind != 0 {
			return 0, b.fault(fault)
		}
		if b.left == 0 {
			break
		}
		n, err = b.fill(r, false)
	}
	if err != nil {
		return 0, err
	}
	o, _ := b.Made()
	return o, nil
}

// fill reads tokens into pieces until there is no room, or the value ends. It gets the arrays, or takes those that were
// found before.
func (b *builder) fill(r *values.Reader, find bool) (n int, err error) {
	for n < len(b.pieces) && b.left > 0 {
		t, err := r.Next()
		if err != nil {
			return 0, err
		}
		if t.Kind == values.KindArray && find {
			if err := b.find(t.N); err != nil {
				return 0, err
			}
		}
		b.piece(&b.pieces[n], r, &t)
		b.left += t.Items() - 1
		n++
	}
	return n, nil
}

// scan reads the rest of the value for its arrays.
func (b *builder) scan(r *values.Reader) error {
	for b.left > 0 {
		t, err := r.Next()
		if err != nil {
			return err
		}
		if t.Kind == values.KindArray {
			if err := b.find(t.N); err != nil {
				return err
			}
		}
		b.left += t.Items() - 1
	}
	return nil
}

func (b *builder) find(i int) error {
	if b.array == nil {
		return values.Cannot("an array cannot cross here")
	}
	o, err := b.array(b.gil, i)
	if err != nil {
		return err
	}
	b.found = append(b.found, o)
	return nil
}

// kinds are the pieces that tokens become, of those that are only that.
var kinds = [...]py.PieceKind{
	values.KindNull: py.PieceNone, values.KindInt: py.PieceInt, values.KindBig: py.PieceBig, values.KindFloat: py.PieceFloat,
	values.KindComplex: py.PieceComplex, values.KindText: py.PieceStr, values.KindBytes: py.PieceBytes,
	values.KindArray: py.PieceObject, values.KindList: py.PieceList, values.KindTuple: py.PieceTuple,
	values.KindSet: py.PieceSet, values.KindFrozenSet: py.PieceFrozenSet, values.KindDict: py.PieceDict,
	values.KindRecord: py.PieceRecord,
}

func (b *builder) piece(p *py.Piece, r *values.Reader, t *values.Token) {
	p.Kind = kinds[t.Kind]
	switch t.Kind {
	case values.KindBool:
		if p.Kind = py.PieceFalse; t.Int != 0 {
			p.Kind = py.PieceTrue
		}
	case values.KindInt:
		p.N = t.Int
	case values.KindFloat, values.KindComplex:
		p.Re, p.Im = real(t.Num), imag(t.Num)
	case values.KindBig, values.KindText, values.KindBytes:
		p.In(r.At()-len(t.Bytes), len(t.Bytes), t.Neg)
	case values.KindArray:
		p.Object = b.found[b.passed]
		b.passed++
	default:
		p.N = int64(t.Items())
	}
}

// fault says why something cannot be made, and where.
func (b *builder) fault(f py.PlainFault) error {
	err := f.Err
	switch f.Kind {
	case py.PlainTwice:
		err = values.Cannot("two keys, or two items of a set, are the same in Python")
	case py.PlainRaised:
		err = &values.PlaceError{Kind: core.ErrUnsupported, Err: f.Err}
	case py.PlainDeep:
		err = values.TooDeep()
	default:
	}
	return values.At(path(b.gil, b.Plain), err)
}
