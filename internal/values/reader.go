package values

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"unicode/utf8"

	"github.com/ndbridge/ndbridge/core"
)

// Kind says what a token is.
type Kind uint8

// The kinds of token. Those from KindList to KindRecord are containers, whose items follow.
const (
	KindNull Kind = iota
	KindBool
	KindInt
	KindBig
	KindFloat
	KindComplex
	KindText
	KindBytes
	KindArray
	KindList
	KindTuple
	KindSet
	KindFrozenSet
	KindDict
	KindRecord
)

var kindNames = [...]string{
	KindNull: "None", KindBool: "bool", KindInt: "int", KindBig: "int", KindFloat: "float", KindComplex: "complex",
	KindText: "str", KindBytes: "bytes", KindArray: "array", KindList: "list", KindTuple: "tuple", KindSet: "set",
	KindFrozenSet: "frozenset", KindDict: "dict", KindRecord: "record",
}

// String gives Python's word for it.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", k)
	}
	return kindNames[k]
}

// Token is an item of the form; of a container, its head.
type Token struct {
	Kind  Kind
	Neg   bool       // KindBig: the value is -1 - Bytes
	Int   int64      // KindInt; KindBool: 0 or 1
	N     int        // of a container: how many items follow, or of a dict or record, pairs of items; of KindArray, its number
	Num   complex128 // KindComplex; KindFloat, without an imaginary part
	Bytes []byte     // KindText, KindBytes; KindBig, big-endian; the name of a KindRecord's type. A part of the form.
}

// Items says how many items follow the token as its own.
func (t *Token) Items() int {
	switch {
	case t.Kind >= KindDict:
		return 2 * t.N
	case t.Kind >= KindList:
		return t.N
	default:
		return 0
	}
}

// Big gives the value of a KindInt or KindBig.
func (t *Token) Big() *big.Int {
	if t.Kind == KindInt {
		return big.NewInt(t.Int)
	}
	v := new(big.Int).SetBytes(t.Bytes)
	if t.Neg {
		v.Not(v)
	}
	return v
}

// Reader reads the form, a token at a time. It trusts nothing: it accepts what a [Writer] can have written, and an
// error matches [core.ErrProtocol]. The bytes must not change while they are read. After an error a Reader is of no
// more use.
type Reader struct {
	b     []byte
	off   int
	owed  int // items that open containers still have
	depth int
	open  [MaxDepth]frame
}

// frame is a container whose items are being read: how many of them are left, twice, and 1 if it is a record.
type frame int

func (f frame) left() int    { return int(f >> 1) }
func (f frame) record() bool { return f&1 != 0 }

// NewReader gives a Reader of a form, or of several one after the other.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// More reports whether there are bytes left.
func (r *Reader) More() bool { return r.off < len(r.b) }

// End gives an error if there is something left, or missing.
func (r *Reader) End() error {
	switch {
	case r.owed > 0:
		return r.bad("%d items are missing", r.owed)
	case r.More():
		return r.bad("%d bytes too many", len(r.b)-r.off)
	default:
		return nil
	}
}

// Form gives what the Reader was made with.
func (r *Reader) Form() []byte { return r.b }

// At says how many bytes of it were read: the Bytes of a token of text, of bytes or of a big int, which was read last, end
// there.
func (r *Reader) At() int { return r.off }

// Skip passes over an item, and checks it.
func (r *Reader) Skip() error {
	for n := 1; n > 0; n-- {
		t, err := r.Next()
		if err != nil {
			return err
		}
		n += t.Items()
	}
	return nil
}

// Next reads a token.
func (r *Reader) Next() (Token, error) {
	for r.depth > 0 && r.open[r.depth-1].left() == 0 {
		r.depth--
	}
	t, err := r.token()
	if err != nil {
		return Token{}, err
	}
	if r.depth > 0 {
		f := &r.open[r.depth-1]
		if f.record() && f.left()%2 == 0 && t.Kind != KindText {
			return Token{}, r.bad("a field whose name is of the type %s", t.Kind)
		}
		*f -= 2
		r.owed--
	}
	if t.Kind < KindList {
		return t, nil
	}
	n := t.Items()
	switch {
	case r.depth == MaxDepth:
		return Token{}, r.bad("containers more than %d deep", MaxDepth)
	case n > len(r.b)-r.off-r.owed: // an item has a byte at least
		return Token{}, r.bad("a %s of %d items in %d bytes", t.Kind, n, len(r.b)-r.off)
	}
	r.open[r.depth] = frame(2 * n)
	if t.Kind == KindRecord {
		r.open[r.depth]++
	}
	r.depth++
	r.owed += n
	return t, nil
}

// token reads a token as if it stood alone.
func (r *Reader) token() (Token, error) {
	if r.off >= len(r.b) {
		return Token{}, r.short()
	}
	switch b := r.b[r.off]; b {
	case byteNull:
		r.off++
		return Token{Kind: KindNull}, nil
	case byteFalse, byteTrue:
		r.off++
		return Token{Kind: KindBool, Int: int64(b - byteFalse)}, nil
	case byteFloat:
		v, err := r.float()
		return Token{Kind: KindFloat, Num: complex(v, 0)}, err
	}
	start := r.off
	major, n, err := r.head()
	if err != nil {
		return Token{}, err
	}
	switch major {
	case majorUint, majorNegint:
		if n > math.MaxInt64 {
			return Token{Kind: KindBig, Neg: major == majorNegint, Bytes: r.b[start+1 : r.off]}, nil
		}
		v := int64(n)
		if major == majorNegint {
			v = -1 - v
		}
		return Token{Kind: KindInt, Int: v}, nil
	case majorBytes:
		p, err := r.take(n)
		return Token{Kind: KindBytes, Bytes: p}, err
	case majorText:
		p, err := r.text(n)
		return Token{Kind: KindText, Bytes: p}, err
	case majorArray:
		return r.container(KindList, n)
	case majorMap:
		return r.container(KindDict, n)
	case majorTag:
		return r.tagged(n)
	default:
		return Token{}, r.bad("the byte %#x", r.b[start])
	}
}

// head reads the first byte of an item, and the number that belongs to it.
func (r *Reader) head() (major byte, n uint64, err error) {
	if r.off >= len(r.b) {
		return 0, 0, r.short()
	}
	b := r.b[r.off]
	r.off++
	major, n = b&(7<<5), uint64(b&31)
	if n < 24 {
		return major, n, nil
	}
	if n > 27 {
		return 0, 0, r.bad("the byte %#x", b)
	}
	size := 1 << (n - 24)
	p, err := r.take(uint64(size))
	if err != nil {
		return 0, 0, err
	}
	least := uint64(24)
	switch size {
	case 1:
		n = uint64(p[0])
	case 2:
		n, least = uint64(binary.BigEndian.Uint16(p)), math.MaxUint8+1
	case 4:
		n, least = uint64(binary.BigEndian.Uint32(p)), math.MaxUint16+1
	default:
		n, least = binary.BigEndian.Uint64(p), math.MaxUint32+1
	}
	if n < least {
		return 0, 0, r.bad("the number %d in %d bytes", n, size)
	}
	return major, n, nil
}

func (r *Reader) container(kind Kind, n uint64) (Token, error) {
	if n > uint64(len(r.b)-r.off) {
		return Token{}, r.bad("a %s of %d items in %d bytes", kind, n, len(r.b)-r.off)
	}
	return Token{Kind: kind, N: int(n)}, nil
}

// want reads a head of this major type.
func (r *Reader) want(major byte) (uint64, error) {
	got, n, err := r.head()
	if err == nil && got != major {
		err = r.bad("major type %d, not %d", got>>5, major>>5)
	}
	return n, err
}

func (r *Reader) tagged(tag uint64) (Token, error) {
	switch tag {
	case tagBig, tagNegBig:
		n, err := r.want(majorBytes)
		if err != nil {
			return Token{}, err
		}
		p, err := r.take(n)
		if err == nil && (len(p) <= 8 || p[0] == 0) {
			err = r.bad("an int that is too long for its value")
		}
		return Token{Kind: KindBig, Neg: tag == tagNegBig, Bytes: p}, err
	case tagComplex:
		return r.complex()
	case tagRecord:
		return r.record()
	case tagArray:
		n, err := r.want(majorUint)
		if err == nil && n > math.MaxInt32 {
			err = r.bad("an array with the number %d", n)
		}
		return Token{Kind: KindArray, N: int(n)}, err
	}
	kind := KindTuple
	switch tag {
	case tagTuple:
	case tagSet:
		kind = KindSet
	case tagFrozenSet:
		kind = KindFrozenSet
	default:
		return Token{}, r.bad("the tag %d", tag)
	}
	n, err := r.want(majorArray)
	if err != nil {
		return Token{}, err
	}
	return r.container(kind, n)
}

func (r *Reader) complex() (Token, error) {
	n, err := r.want(majorArray)
	if err != nil {
		return Token{}, err
	}
	if n != 2 {
		return Token{}, r.bad("a complex number of %d parts", n)
	}
	re, err := r.float()
	if err != nil {
		return Token{}, err
	}
	im, err := r.float()
	return Token{Kind: KindComplex, Num: complex(re, im)}, err
}

func (r *Reader) record() (Token, error) {
	n, err := r.want(majorArray)
	if err != nil {
		return Token{}, err
	}
	if n != 2 {
		return Token{}, r.bad("a record of %d parts", n)
	}
	if n, err = r.want(majorText); err != nil {
		return Token{}, err
	}
	name, err := r.text(n)
	if err != nil {
		return Token{}, err
	}
	if n, err = r.want(majorMap); err != nil {
		return Token{}, err
	}
	t, err := r.container(KindRecord, n)
	t.Bytes = name
	return t, err
}

func (r *Reader) float() (float64, error) {
	p, err := r.take(9)
	if err != nil {
		return 0, err
	}
	if p[0] != byteFloat {
		return 0, r.bad("the byte %#x, not a float", p[0])
	}
	return math.Float64frombits(binary.BigEndian.Uint64(p[1:])), nil
}

func (r *Reader) text(n uint64) ([]byte, error) {
	p, err := r.take(n)
	if err == nil && !utf8.Valid(p) {
		err = r.bad("a text that is not UTF-8")
	}
	return p, err
}

// take passes over n bytes.
func (r *Reader) take(n uint64) ([]byte, error) {
	if n > uint64(len(r.b)-r.off) {
		return nil, r.short()
	}
	p := r.b[r.off : r.off+int(n) : r.off+int(n)]
	r.off += int(n)
	return p, nil
}

func (r *Reader) short() error { return r.protocol(errors.New("the value ends too early")) }

func (r *Reader) bad(format string, args ...any) error {
	return r.protocol(fmt.Errorf(format, args...))
}

func (r *Reader) protocol(err error) error {
	return &PlaceError{Kind: core.ErrProtocol, Err: fmt.Errorf("byte %d of a value: %w", r.off, err)}
}
