package watch

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

func TestDraw(t *testing.T) {
	t.Parallel()
	state := odd(t).State()
	full := Draw(state, Frame{Columns: 100, Lines: 40})
	text := strings.Join(full, "\n")
	for _, want := range []string{"3 arrays", "step 12", "none  float64 [1]  8 bytes  ! nan", "gone", "nan 1", "norm ", "last alarm: "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, f := range []Frame{{Columns: 20, Lines: 6}, {Columns: 3, Lines: 1}, {}, {Columns: 100, Lines: 40, First: 9}} {
		lines := Draw(state, f)
		for _, line := range lines {
			if f.Columns > 0 && len([]rune(line)) > f.Columns {
				t.Errorf("%d columns: %q", f.Columns, line)
			}
			if strings.ContainsAny(line, "\n\x1b") {
				t.Errorf("%q", line)
			}
		}
	}
	if colours := strings.Join(Draw(state, Frame{Columns: 100, Lines: 40, Colours: true}), ""); !strings.Contains(colours, "\x1b[31m") {
		t.Error("an alarm has no colour")
	}
}

// TestDrawWholeFigures draws lines of many widths: a figure is there as a whole or not at all, and what is wrong comes first.
func TestDrawWholeFigures(t *testing.T) {
	t.Parallel()
	s := New(Options{Alarms: []Alarm{alarm(t, "max>2")}})
	s.Add(array("x", of(coretest.NewView(t, []float64{1, 3.25, math.NaN()}))))
	rounds(t, s, 1, func(int) {})
	want := strings.Fields("x ! max>2 nan 1 inf 0 mean 2.125 std 1.125 norm 3.4004 min 1 max 3.25 ▅ …")
	for columns := range 200 {
		lines := Draw(s.State(), Frame{Columns: columns + 1, Lines: 6})
		for word := range strings.FieldsSeq(lines[2]) {
			if !slices.Contains(want, word) {
				t.Fatalf("%d columns: %q in %q", columns+1, word, lines[2])
			}
		}
		if columns >= 80 && !strings.HasPrefix(lines[2], "x ! max>2  nan 1  inf 0  mean 2.125  std 1.125 ") {
			t.Errorf("%d columns: %q", columns+1, lines[2])
		}
	}
}

// TestFigure writes whole numbers, such as a count of steps, with all their digits.
func TestFigure(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{0: "0", 123456: "123456", -2147483648: "-2147483648", 0.123456: "0.12346", 123456.5: "1.2346e+05", 1 << 62: "4.6117e+18", math.Inf(1): "+Inf"} {
		if got := Figure(stats.Number(x)); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}
