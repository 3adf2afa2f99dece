package py

// IsNumber reports whether o is exactly an int or exactly a float, and so no bool and of no class of the program's.
func (g *GIL) IsNumber(o Object) bool {
	class := g.Type(o)
	return class == g.interp.intClass || class == g.interp.floatClass
}

// Number gives the value of what [GIL.IsNumber] reports, without code of the program's: of an int also the nearest float64. It is
// not ok for anything else, nor for an int of more than 64 bits.
func (g *GIL) Number(o Object) (n int64, x float64, whole, ok bool) {
	switch g.Type(o) {
	case g.interp.intClass:
		n = capiInt64(o)
		if n == -1 && capiFailed() {
			capiClear()
			return 0, 0, true, false
		}
		return n, float64(n), true, true
	case g.interp.floatClass:
		return 0, capiFloat64(o), false, true
	default:
		return 0, 0, false, false
	}
}
