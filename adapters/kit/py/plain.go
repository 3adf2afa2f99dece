package py

// PlainFaultKind says why plain objects could not be read or made.
type PlainFaultKind uint8

// The kinds of PlainFault. Zero is none.
const (
	PlainRaised  PlainFaultKind = iota + 1 // Python raised Err
	PlainDeep                              // containers more than MaxPlainDepth deep in each other
	PlainChanged                           // a container changed while it was read
	PlainNoText                            // a str that UTF-8 cannot say
	PlainTwice                             // two keys of a dict, or two items of a set, are the same
)

// PlainFault says why plain objects could not be read or made; the zero PlainFault is none.
type PlainFault struct {
	Kind PlainFaultKind
	Err  error // PlainRaised
}

// Place is a step on the way to an object: into a container.
type Place struct {
	Kind  PieceKind
	Index int    // of the item; a key and its value have two
	Key   Object // of a dict or record: the item's key, or 0 if there is none yet. Borrowed
}

// batch is how many pieces a call of C reads.
const batch = 64

// Plain reads and makes plain objects: None, bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict, and
// all that lies in them. It belongs to one GIL, until Close.
type Plain struct {
	plain
	gil    *GIL
	pieces [batch]Piece
}

// Plain gives a new Plain.
func (g *GIL) Plain() *Plain {
	p, ok := g.interp.plains.Get().(*Plain)
	if !ok {
		p = new(Plain)
	}
	p.gil = g
	return p
}

// Close gives back what the Plain holds. The Plain must not be used any more.
func (p *Plain) Close() {
	p.clear()
	interp := p.gil.interp
	p.gil = nil
	interp.plains.Put(p)
}

// Begin gives the first pieces of o, as Read does.
func (p *Plain) Begin(o Object) ([]Piece, PlainFault) {
	n := p.read(o, p.pieces[:])
	return p.pieces[:n], p.fault(p.gil)
}

// Read gives the next pieces of what was begun, or given with [Plain.Give]; none if they have come to an end, or cannot go on. They
// are in the order in which they would be printed: a container comes before its items. They are valid until the next call
// of a method of the GIL or of the Plain.
//
// Read runs no code of the program's. Instances of classes that are made from the plain ones are read as these see them,
// and a bytearray as bytes. An object of another type is a PieceObject and the last of the pieces. So is an instance of a
// class made from tuple, which may have names for its items. Something else can be given then to be read instead of it.
func (p *Plain) Read() ([]Piece, PlainFault) { return p.Begin(0) }

// Give makes o the next object to be read, instead of the last.
func (p *Plain) Give(o Object) { p.give(PieceObject, o, 0) }

// GiveItems makes the items of a tuple the next objects to be read: those of a container of this kind whose head the caller
// has noted.
func (p *Plain) GiveItems(kind PieceKind, items Object) PlainFault {
	p.give(kind, items, 0)
	return p.fault(p.gil)
}

// GiveRecord makes the names and values of a record the next objects to be read. Both are tuples of the same length.
func (p *Plain) GiveRecord(names, items Object) PlainFault {
	p.give(PieceRecord, items, names)
	return p.fault(p.gil)
}

// Room gives memory for pieces that are to be made. What Read gave lies there, too.
func (p *Plain) Room() []Piece { return p.pieces[:] }

// Make makes objects of pieces, which follow those of the calls before. Text is what pieces with a text lie in (see
// [Piece.In]). A set or dict must not have too few items: it is only there when it has all of them, and what is in it must
// have a hash.
func (p *Plain) Make(pieces []Piece, text []byte) PlainFault {
	if p.make(pieces, text) == len(pieces) {
		return PlainFault{}
	}
	return p.fault(p.gil)
}

// Made gives the object that Make has made, once it is whole.
func (p *Plain) Made() (Object, bool) {
	o := p.take()
	if o == 0 {
		return 0, false
	}
	return p.gil.own(o), true
}
