package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestQuantiles(t *testing.T) {
	t.Parallel()
	var many []time.Duration
	for i := range 1000 {
		many = append(many, time.Duration(1000-i))
	}
	if got, want := QuantilesOf(many), (Quantiles{P50: 501, P99: 991, P999: 1000, N: 1000}); got != want {
		t.Errorf("quantiles of 1 to 1000 are %+v", got)
	}
	if got := QuantilesOf(nil); got != (Quantiles{}) {
		t.Errorf("quantiles of nothing are %+v", got)
	}
}

// TestInterleave holds the order, what counts, and that an error says whose it is.
func TestInterleave(t *testing.T) {
	t.Parallel()
	var order []string
	subject := func(way string, every int) *Subject {
		c := Caller{Do: func(context.Context) error { order = append(order, way); return nil }}
		return &Subject{Key: Key{Way: way}, Turn: Calls(1, 2, c), Every: every}
	}
	rows, err := Interleave(t.Context(), 3, []*Subject{subject("a", 0), subject("b", 2)})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, ""); got != "aaabbbaaaaaabbb" {
		t.Errorf("order %s", got)
	}
	a, ok := rows.Find(Key{Way: "a"})
	b, _ := rows.Find(Key{Way: "b"})
	if _, found := rows.Find(Key{Way: "c"}); !ok || found || a.N != 6 || b.N != 4 {
		t.Errorf("rows %+v", rows)
	}
	failing := &Subject{Key: Key{"c", "numpy", 4 * KiB, 2}, Turn: func(context.Context) ([]time.Duration, error) {
		return nil, errors.New("no")
	}}
	if _, err := Interleave(t.Context(), 1, []*Subject{failing}); err == nil || err.Error() != "c, numpy, 4 KiB, 2 callers: no" {
		t.Errorf("Interleave = %v", err)
	}
}

// TestOver: what changes for both from round to round does not change how many times as long one takes.
func TestOver(t *testing.T) {
	t.Parallel()
	subject := func(way string, every int, rounds ...time.Duration) *Subject {
		i := 0
		return &Subject{Key: Key{Way: way}, Every: every, Turn: func(context.Context) ([]time.Duration, error) {
			took := rounds[i]
			i++
			return []time.Duration{took, took, 1000 * took}, nil
		}}
	}
	rows, err := Interleave(t.Context(), 4, []*Subject{
		subject("base", 0, 10, 10, 90, 10), subject("twice", 0, 20, 20, 180, 1000), subject("now and then", 2, 30, 270),
	})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := rows[1].Over(rows[0]), rows[2].Over(rows[0]); a != 2 || b != 3 {
		t.Errorf("%v and %v times as long, want 2 and 3", a, b)
	}
	if got := rows[1].Over(Row{}); got != 0 {
		t.Errorf("%v times as long as nothing", got)
	}
}

// TestCalls holds that callers call at the same time, and that each call is tidied.
func TestCalls(t *testing.T) {
	t.Parallel()
	meet, tidied := make(chan bool), make([]int, 2)
	var callers []Caller
	for i := range 2 {
		callers = append(callers, Caller{
			Do: func(context.Context) error {
				select {
				case meet <- true:
				case <-meet:
				}
				return nil
			},
			Tidy: func() error { tidied[i]++; return nil },
		})
	}
	took, err := Calls(2, 5, callers...)(t.Context())
	if err != nil || len(took) != 10 || slices.Min(took) <= 0 || tidied[0] != 7 || tidied[1] != 7 {
		t.Errorf("Calls = %v, %v; tidied %v", took, err, tidied)
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		1234 * time.Nanosecond: "1.234 us", 9 * time.Millisecond: "9000 us", 12 * time.Millisecond: "12 ms", 70 * time.Second: "70 s",
	} {
		if got := TimeText(d); got != want {
			t.Errorf("TimeText(%d) = %s, want %s", d, got, want)
		}
	}
	for n, want := range map[int]string{4096: "4 KiB", 64 * MiB: "64 MiB", 2 * GiB: "2 GiB"} {
		if got := SizeText(n); got != want {
			t.Errorf("SizeText(%d) = %s, want %s", n, got, want)
		}
	}
}
