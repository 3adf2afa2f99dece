package suites

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// table is what `make suites` writes.
type table struct {
	mu   sync.Mutex
	rows map[string]map[string]verdict // by suite and Python
}

func (t *table) add(python, suite string, v verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows == nil {
		t.rows = map[string]map[string]verdict{}
	}
	if t.rows[suite] == nil {
		t.rows[suite] = map[string]verdict{}
	}
	t.rows[suite][python] = v
}

const tableHead = `# Suites of others under a host

Written by "make suites". Each cell is a run of tests that others wrote, in a program whose arrays a host looks at meanwhile without pause.
The same tests ran without a host; a number alone says how many tests there were, and that none of them failed under a host only.

`

// text gives the table.
func (t *table) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := map[string]bool{}
	for _, row := range t.rows {
		for python := range row {
			seen[python] = true
		}
	}
	pythons := slices.SortedFunc(maps.Keys(seen), byVersion)
	var b strings.Builder
	b.WriteString(tableHead)
	fmt.Fprintf(&b, "| suite | %s |\n|%s\n", strings.Join(pythons, " | "), strings.Repeat(" --- |", len(pythons)+1))
	looks := 0
	for _, suite := range slices.Sorted(maps.Keys(t.rows)) {
		cells := []string{suite}
		for _, python := range pythons {
			v, ok := t.rows[suite][python]
			cells = append(cells, v.cell(ok))
			looks += v.looks
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	fmt.Fprintf(&b, "\nThe host took %d views.\n", looks)
	return b.String()
}

func (v verdict) cell(ran bool) string {
	if !ran {
		return ""
	}
	text := strconv.Itoa(v.tests)
	if v.both > 0 {
		text += fmt.Sprintf(", of which %d fail without a host, too", v.both)
	}
	if len(v.unsteady) > 0 {
		text += "; failed once, and not again: " + strings.Join(v.unsteady, ", ")
	}
	if len(v.ours) > 0 {
		text += "; **under a host only: " + strings.Join(v.ours, ", ") + "**"
	}
	return text
}

// byVersion orders "3.8.18" before "3.13.0".
func byVersion(a, b string) int {
	numbers := func(version string) (n []int) {
		for part := range strings.SplitSeq(version, ".") {
			x, _ := strconv.Atoi(part)
			n = append(n, x)
		}
		return n
	}
	return slices.Compare(numbers(a), numbers(b))
}

func TestTable(t *testing.T) {
	var r table
	r.add("3.13.0", "test_os", verdict{tests: 9, looks: 5})
	r.add("3.8.18", "test_os", verdict{tests: 8, both: 1, looks: 6, unsteady: []string{"a"}})
	r.add("3.8.18", "test_gc", verdict{tests: 7, ours: []string{"b"}})
	want := tableHead + `| suite | 3.8.18 | 3.13.0 |
| --- | --- | --- |
| test_gc | 7; **under a host only: b** |  |
| test_os | 8, of which 1 fail without a host, too; failed once, and not again: a | 9 |

The host took 11 views.
`
	if got := r.text(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
