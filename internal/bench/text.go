package bench

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// SizeText writes a size in the largest unit that it fills.
func SizeText(n int) string {
	switch {
	case n >= GiB:
		return fmt.Sprintf("%d GiB", n/GiB)
	case n >= MiB:
		return fmt.Sprintf("%d MiB", n/MiB)
	default:
		return fmt.Sprintf("%d KiB", n/KiB)
	}
}

// TimeText writes a duration with four digits, in microseconds up to 10 ms.
func TimeText(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.4g us", float64(d)/1e3)
	case d < 10*time.Second:
		return fmt.Sprintf("%.4g ms", float64(d)/1e6)
	default:
		return fmt.Sprintf("%.4g s", d.Seconds())
	}
}

// Print writes the rows as a table.
func (r Rows) Print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format, args...) } // Flush has the error
	line("way\tframework\tsize\tcallers\tp50\tp99\tp99.9\tn\tallocations\t\n")
	for _, row := range r {
		size, callers, allocations := "", "", ""
		if row.Bytes > 0 {
			size = SizeText(row.Bytes)
		}
		if row.Callers > 0 {
			callers = strconv.Itoa(row.Callers)
		}
		if row.Allocations != nil {
			allocations = fmt.Sprintf("%.1f", *row.Allocations)
		}
		line("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t\n", row.Way, row.Framework, size, callers,
			TimeText(row.P50), TimeText(row.P99), TimeText(row.P999), row.N, allocations)
	}
	return table.Flush()
}
