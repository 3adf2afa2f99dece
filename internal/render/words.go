package render

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

// Size writes a number of bytes as people read it: "512 bytes", "1.5 KiB", "32.0 MiB".
func Size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	size, units := float64(n), []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for size /= 1024; size >= 1024 && len(units) > 1; size /= 1024 {
		units = units[1:]
	}
	return fmt.Sprintf("%.1f %s", size, units[0])
}

// Shape writes the shape of a layout as people read it: "480 x 640 x 3".
func Shape(l core.Layout) string {
	if l.Rank() == 0 {
		return "one element, no axes"
	}
	dims := make([]string, l.Rank())
	for axis := range dims {
		dims[axis] = strconv.Itoa(l.Dim(axis))
	}
	return strings.Join(dims, " x ")
}
