package board

// The layout's numbers, for tests that write them down a second time.
const (
	MaxNames = maxNames
	MaxCells = maxCells
)

// UseUp makes a note's cell come to its last generation.
func (n *Note) UseUp() {
	n.poster.generations[n.cell] = maxGeneration
	n.generation = maxGeneration
}

// Cell is the number of a note's cell.
func (n *Note) Cell() uint32 { return n.cell }
