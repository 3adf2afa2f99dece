package main

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/stats"
)

// numberListing is what "ls --json --numbers" says about a number of Python's own.
type numberListing struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value any    `json:"value"` // null if JSON has no such number
	Text  string `json:"text"`
}

func numberListingOf(n contract.Number) numberListing {
	l := numberListing{Name: n.Name, Type: n.Type(), Value: stats.Number(n.Value), Text: numberText(n)}
	if n.Whole {
		l.Value = n.Int
	}
	return l
}

// numberText writes a number much as Python does.
func numberText(n contract.Number) string {
	switch {
	case n.Whole:
		return strconv.FormatInt(n.Int, 10)
	case math.IsInf(n.Value, 1):
		return "inf"
	default:
		return strings.ToLower(strconv.FormatFloat(n.Value, 'g', -1, 64)) // nan, -inf
	}
}

// isPart reports whether a number belongs to an object, and is no variable.
func isPart(n contract.Number) bool {
	path, err := names.Parse(n.Name)
	return err != nil || len(path.Steps) > 0
}

// numberLines prints a number a line.
func (l *lister) numberLines(table *tabwriter.Writer, numbers []contract.Number) error {
	slices.SortStableFunc(numbers, func(a, b contract.Number) int { return cmp.Compare(a.Name, b.Name) })
	for _, n := range numbers {
		var err error
		if l.json {
			err = writeJSON(l.env.stdout, numberListingOf(n))
		} else {
			err = l.line(table, prose.Line(n.Name), "python", n.Type(), "-", numberText(n))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
