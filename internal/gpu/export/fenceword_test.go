//go:build cuda

package export_test

import (
	"encoding/binary"
	"testing"

	"github.com/ndbridge/ndbridge/internal/gpu/export"
)

// fence gives a fence that must be a word.
func fence(t *testing.T, q *export.Queue) *export.FenceWord {
	t.Helper()
	word, ok, err := q.Fence()
	if err != nil || !ok || word == nil {
		t.Fatalf("a fence of %v, %v (%v)", word, ok, err)
	}
	return word
}

// read gives what a fence's word holds, and the error behind it.
func read(t *testing.T, w *export.FenceWord) (value, failure uint32) {
	t.Helper()
	page, err := w.Page.Open(false)
	check(t, err)
	defer page.Close()
	var data [8]byte
	_, err = page.ReadAt(data[:], w.Offset)
	check(t, err)
	return binary.NativeEndian.Uint32(data[:]), binary.NativeEndian.Uint32(data[4:])
}

// TestManyFencesNeedFewWords: while work is under way any number of fences after it need no more words
// than there are streams, and all are reached when it is done, none before.
func TestManyFencesNeedFewWords(t *testing.T) { //nolint:paralleltest // others free memory, which waits for all streams
	const fences = 300
	p := newProgram(t)
	gate := p.gate()
	pages := make(map[*export.Page]bool)
	states := make(map[int64]bool)
	words := make([]*export.FenceWord, 0, fences)
	for range fences {
		q := p.queue()
		check(t, q.AfterStream(&p.Exporter, uintptr(p.slow)))
		w := fence(t, q)
		q.Close()
		pages[w.Page], states[w.Offset] = true, true
		words = append(words, w)
	}
	p.reachedAfter(gate, words)
	if len(pages) != 1 || len(states) > 8 {
		t.Errorf("%d fences took %d words on %d pages", fences, len(states), len(pages))
	}
}

// TestManyHandOversAtOnce: more hand-overs than there are streams kept leave none behind, and the fence of
// each comes after its work.
func TestManyHandOversAtOnce(t *testing.T) { //nolint:paralleltest // others free memory, which waits for all streams
	const many = 40
	p := newProgram(t)
	for range 3 {
		gate := p.gate()
		var queues []*export.Queue
		var words []*export.FenceWord
		for range many {
			q := p.queue()
			check(t, q.AfterStream(&p.Exporter, uintptr(p.slow)))
			queues, words = append(queues, q), append(words, fence(t, q))
		}
		for _, q := range queues {
			q.Close()
		}
		for _, w := range words {
			if w.Page != words[0].Page {
				t.Error("words of queues that are not in use any more were not used again")
			}
		}
		p.reachedAfter(gate, words)
	}
}

// TestWordIsUsedUp: values do not wrap around; after the last one a queue takes another word.
func TestWordIsUsedUp(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	q := p.queue()
	defer q.Close()
	var old *export.FenceWord
	for i := range 4 {
		p.work(p.fast, 1e6)
		check(t, q.AfterStream(&p.Exporter, uintptr(p.fast)))
		w := fence(t, q)
		check(t, q.Wait(t.Context()))
		if value, _ := read(t, w); value != w.Value || int32(value) < 0 {
			t.Fatalf("the word of fence %d is %d, not %d", i, value, w.Value)
		}
		switch {
		case i == 0:
			q.UseUp()
		case i == 2 && w.Offset == old.Offset:
			t.Error("a word was used beyond its last value")
		}
		old = w
	}
}

// gate holds the slow stream up.
func (p *program) gate() (g export.Gate) {
	p.t.Helper()
	p.do(func() (err error) {
		if g, err = export.NewGate(); err == nil {
			err = g.Hold(p.slow)
		}
		return err
	})
	return g
}

// reachedAfter fails if fences that come after what the gate holds up are reached before it is opened, or
// not afterwards. It closes the gate.
func (p *program) reachedAfter(gate export.Gate, words []*export.FenceWord) {
	t := p.t
	t.Helper()
	early := 0
	for _, w := range words {
		if value, _ := read(t, w); value >= w.Value {
			early++
		}
	}
	gate.Open()
	if early > 0 {
		t.Errorf("%d of %d fences were reached before the work was done", early, len(words))
	}
	q := p.queue()
	defer q.Close()
	check(t, q.Synchronize(t.Context()))
	p.do(gate.Close)
	for _, w := range words {
		if value, failure := read(t, w); value < w.Value || failure != 0 {
			t.Fatalf("a word is %d with error %d, where %d was to be written", value, failure, w.Value)
		}
	}
}
