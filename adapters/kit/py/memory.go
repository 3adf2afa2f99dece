package py

// The flags of a buffer request, as in Python's documentation.
const (
	BufferWritable = 0x0001 // refuse read-only memory
	BufferFormat   = 0x0004 // fill in Format; without it the elements are bytes
	BufferND       = 0x0008 // fill in Shape; without it the buffer is a run of bytes
	BufferStrides  = 0x0010 | BufferND
	BufferIndirect = 0x0100 | BufferStrides // also accept elements behind pointers
	BufferFull     = BufferIndirect | BufferFormat
)

// Buffer is the memory of an object that speaks the buffer protocol. The exporter keeps the memory
// where it is until Release, or until the scope that it came from ends. All it says is untrusted.
type Buffer struct {
	Addr     uintptr
	Len      int // bytes
	ItemSize int // bytes
	Rank     int
	ReadOnly bool
	Indirect bool   // has suboffsets: the elements are behind pointers
	Format   string // of the struct module; "" means "B"
	Shape    []int  // nil if not asked for, or if Rank is 0
	Strides  []int  // bytes; nil if not asked for, or if the memory is in C order

	raw rawBuffer
}

// Buffer asks o for its memory. The flags say how complex an answer is understood.
func (g *GIL) Buffer(o Object, flags int) (*Buffer, error) {
	raw := capiBuffer(o, flags)
	if raw == (rawBuffer{}) {
		return nil, g.failure()
	}
	b := &Buffer{raw: raw}
	raw.fill(b)
	g.buffers = append(g.buffers, b)
	return b, nil
}

// Release gives the memory back before the scope ends. It needs the GIL. Calling it again does
// nothing.
func (b *Buffer) Release() {
	if b.raw != (rawBuffer{}) {
		b.raw.release()
		b.raw = rawBuffer{}
	}
}

// IsCapsule reports whether o is a capsule.
func (g *GIL) IsCapsule(o Object) bool {
	t := capiType(o)
	defer capiDecref(t)
	return t == capiCapsuleType()
}

// CapsuleName gives the name of a capsule; false if it has none, or if o is not one.
func (g *GIL) CapsuleName(o Object) (string, bool) {
	if !g.IsCapsule(o) {
		return "", false
	}
	return capiCapsuleName(o)
}

// Capsule gives the pointer in a capsule of this name; false if o is no such capsule.
func (g *GIL) Capsule(o Object, name string) (uintptr, bool) {
	p := capiCapsule(o, g.interp.cName(name))
	return p, p != 0
}

// SetCapsuleName renames a capsule. Each distinct name takes memory forever, so names are constants.
func (g *GIL) SetCapsuleName(o Object, name string) error {
	if capiCapsuleRename(o, g.interp.cName(name)) < 0 {
		return g.failure()
	}
	return nil
}

// CallDeleter calls a C function void (*)(void *) at an address that a framework gave, with the GIL
// held, as the deleters of DLPack tensors want it.
func (g *GIL) CallDeleter(function, argument uintptr) { capiCallDeleter(function, argument) }

// CallExporter calls a C function int (*)(PyObject *, struct **) at an address that a framework gave,
// and gives the struct that it made for o: so DLPack exports without a call of Python code.
func (g *GIL) CallExporter(function uintptr, o Object) (uintptr, error) {
	made, r := capiCallExporter(function, o)
	if r != 0 {
		return 0, g.failure()
	}
	return made, nil
}
