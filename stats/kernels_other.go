//go:build !amd64

package stats

func fast() bool { return false }

const step = 16

func widenAVX2(*float64, *byte, int)                  {}
func passAVX2(*float64, int, *lanes)                  {}
func squaresAVX2(*float64, int, float64, *[4]float64) {}
func indexAVX2(*float64, int, *placing, *int32)       {}

func passSingleAVX2(*byte, int, float64, *singleLanes) {}

func pairsSingleAVX2(*byte, int, *placingSingle, *uint64, *uint16) {}
