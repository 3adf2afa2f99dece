package watch

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ndbridge/ndbridge/stats"
)

// Alarm is a condition on a figure of arrays, such as "nan" or "norm>100".
type Alarm struct {
	text    string
	pattern string // of names, in which * stands for anything; "": all arrays
	figure  string
	op      string
	bound   float64
}

// rearm is how many looks in a row an alarm is quiet before it can be raised again: a sample may miss what another saw.
const rearm = 10

// figures are what alarms compare and what is recorded.
func figures() map[string]func(*stats.Summary) float64 {
	count := func(n int) float64 { return float64(n) }
	return map[string]func(*stats.Summary) float64{
		"nan":      func(s *stats.Summary) float64 { return count(s.NaN) },
		"inf":      func(s *stats.Summary) float64 { return count(s.PosInf + s.NegInf) },
		"zero":     func(s *stats.Summary) float64 { return s.Share(s.Zero) },
		"negative": func(s *stats.Summary) float64 { return s.Share(s.Negative) },
		"positive": func(s *stats.Summary) float64 { return s.Share(s.Positive) },
		"min":      func(s *stats.Summary) float64 { return s.Min },
		"max":      func(s *stats.Summary) float64 { return s.Max },
		"absmax":   func(s *stats.Summary) float64 { return math.Max(-s.Min, s.Max) },
		"mean":     func(s *stats.Summary) float64 { return s.Mean },
		"std":      func(s *stats.Summary) float64 { return s.Std },
		"norm":     func(s *stats.Summary) float64 { return s.Norm },
	}
}

// stale is the figure of how long an array has not changed.
const stale = "stale"

// ParseAlarm reads an alarm: [PATTERN:]FIGURE[OP NUMBER]. In PATTERN, * stands for any characters. FIGURE is one of nan, inf, zero, negative, positive, min, max,
// absmax, mean, std, norm and stale; OP is one of <, <=, > and >=. nan and inf alone mean more than none. The number of
// stale is a time, such as 30s. A condition that always holds, or never, is an error.
func ParseAlarm(text string) (Alarm, error) {
	a := Alarm{text: strings.TrimSpace(text)}
	condition := a.text
	if i := strings.LastIndexByte(condition, ':'); i >= 0 {
		a.pattern, condition = strings.TrimSpace(condition[:i]), strings.TrimSpace(condition[i+1:])
	}
	figure, number := condition, ""
	if i := strings.IndexAny(condition, "<>"); i >= 0 {
		j := i + 1
		if strings.HasPrefix(condition[j:], "=") {
			j++
		}
		figure, a.op, number = condition[:i], condition[i:j], strings.TrimSpace(condition[j:])
	}
	a.figure = strings.TrimSpace(figure)
	_, known := figures()[a.figure]
	if !known && a.figure != stale {
		names := []string{stale}
		for name := range figures() {
			names = append(names, name)
		}
		slices.Sort(names)
		return a, fmt.Errorf("%q is not a figure; expected one of %s", a.figure, strings.Join(names, ", "))
	}
	var err error
	if a.op, a.bound, err = boundOf(a.figure, a.op, number); err == nil {
		err = a.check(condition)
	}
	return a, err
}

// check refuses a condition that is the same for all values that its figure can have.
func (a Alarm) check(condition string) error {
	most, values := math.Inf(1), "never negative"
	switch a.figure {
	case "min", "max", "mean":
		return nil
	case "zero", "negative", "positive":
		most, values = 1, "a share, between 0 and 1"
	case stale:
		values = "a time, and never negative"
	}
	always := a.holds(0)
	switch {
	case always != a.holds(most):
		return nil
	case always:
		return fmt.Errorf("%s always holds: %s is %s", condition, a.figure, values)
	}
	return fmt.Errorf("%s can never hold: %s is %s", condition, a.figure, values)
}

// boundOf reads what a figure is compared with.
func boundOf(figure, op, number string) (string, float64, error) {
	if op == "" {
		if figure != "nan" && figure != "inf" {
			return "", 0, fmt.Errorf("%s needs a bound, such as %s>1", figure, figure)
		}
		return ">", 0, nil
	}
	if figure == stale {
		d, err := time.ParseDuration(number)
		if err != nil {
			return "", 0, fmt.Errorf("%q is not a time such as 30s", number)
		}
		return op, d.Seconds(), nil
	}
	bound, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(bound) {
		return "", 0, fmt.Errorf("%q is not a number", number)
	}
	return op, bound, nil
}

// String gives the alarm as it was written.
func (a Alarm) String() string { return a.text }

// concerns reports whether the alarm is of what has this name. One without a pattern is of arrays, and of numbers only if they are NaN: a
// counter is large, a constant does not change, and what a minimum is taken of begins with infinity.
func (a Alarm) concerns(name string, number bool) bool {
	if number && a.pattern == "" && a.figure != "nan" {
		return false
	}
	parts := strings.Split(a.pattern, "*")
	if len(parts) == 1 {
		return a.pattern == "" || a.pattern == name
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	for _, part := range parts[1 : len(parts)-1] {
		if ok {
			_, rest, ok = strings.Cut(rest, part)
		}
	}
	return ok && strings.HasSuffix(rest, parts[len(parts)-1])
}

// holds reports whether the condition is met.
func (a Alarm) holds(value float64) bool {
	switch a.op {
	case "<":
		return value < a.bound
	case "<=":
		return value <= a.bound
	case ">":
		return value > a.bound
	default:
		return value >= a.bound
	}
}

// value is the figure that the alarm compares.
func (a Alarm) value(s *stats.Summary, unchanged time.Duration) float64 {
	if a.figure == stale {
		return unchanged.Seconds()
	}
	return figures()[a.figure](s)
}

// Event is an alarm that was raised.
type Event struct {
	Time    time.Time    `json:"time"`
	Name    string       `json:"name"`
	Alarm   string       `json:"alarm"`
	Figure  string       `json:"figure"`
	Value   stats.Number `json:"value"`
	Version uint64       `json:"version"` // of the array, if it was published
	// Step is the step at which the condition was met, and Before the last one at which it is known that it was not: all elements were
	// read since, and did not meet it. They are null if no step is watched, if there was none then, or if that is not known.
	Step   *stats.Number `json:"step"`
	Before *stats.Number `json:"before"`
	Seen   int           `json:"seen"`
	Len    int           `json:"len"`
}

// String says what happened in one line.
func (e Event) String() string {
	var b strings.Builder
	condition := e.Alarm
	if i := strings.LastIndexByte(condition, ':'); i >= 0 && strings.TrimSpace(condition[:i]) == e.Name {
		condition = strings.TrimSpace(condition[i+1:]) // its pattern is the name
	}
	fmt.Fprintf(&b, "%s: %s: ", e.Name, condition)
	value := strconv.FormatFloat(float64(e.Value), 'g', 6, 64)
	switch e.Figure {
	case "nan", "inf":
		fmt.Fprintf(&b, "%s of %d elements", value, e.Seen)
	case stale:
		fmt.Fprintf(&b, "no change for %s", time.Duration(float64(e.Value)*float64(time.Second)).Round(time.Millisecond))
	default:
		fmt.Fprintf(&b, "%s is %s", e.Figure, value)
	}
	if e.Seen < e.Len && e.Figure != stale {
		fmt.Fprintf(&b, " (in a sample of the array's %d elements)", e.Len)
	}
	number := func(n *stats.Number) string { return strconv.FormatFloat(float64(*n), 'g', 15, 64) }
	if e.Step != nil {
		fmt.Fprintf(&b, " at step %s", number(e.Step))
	}
	if e.Before != nil && (e.Step == nil || *e.Before != *e.Step) {
		fmt.Fprintf(&b, ", not at step %s", number(e.Before))
	}
	if e.Version > 0 {
		fmt.Fprintf(&b, ", version %d", e.Version)
	}
	return b.String()
}
