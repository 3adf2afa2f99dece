package arrays_test

import (
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/arrays"
	"github.com/ndbridge/ndbridge/internal/calls"
)

// TestMemory: memory is zeros at first, one page at least, and its end is final.
func TestMemory(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, 1, 4096, 1 << 20} {
		m, err := arrays.New(size)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range m.Bytes() {
			if b != 0 {
				t.Fatalf("byte %d is %d", i, b)
			}
		}
		if m.Size() != max(size, 1) || m.Used() {
			t.Errorf("memory of %d bytes has %d, and is used: %v", size, m.Size(), m.Used())
		}
		for range 2 {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := arrays.New(1 << 62); err == nil {
		t.Error("there is memory of 2^62 bytes")
	}
}

// TestSegmentIsGivenOnce: a program gets memory when it first needs it, once for reading and once for writing, however
// many ask at the same time.
func TestSegmentIsGivenOnce(t *testing.T) {
	t.Parallel()
	p := &program{}
	s, m := space(t, p), memory(t, 100, "text")
	var asking sync.WaitGroup
	var got [2][50]uint32
	for way := range got {
		for i := range got[way] {
			asking.Go(func() {
				n, err := s.Segment(t.Context(), m.File, way == 1)
				if err != nil {
					t.Error(err)
				}
				got[way][i] = n
			})
		}
	}
	asking.Wait()
	if _, adopted := p.count(); adopted != 2 {
		t.Errorf("the program was given memory %d times, want 2", adopted)
	}
	for way := range got {
		for _, n := range got[way] {
			if n != got[way][0] {
				t.Errorf("one memory has the numbers %d and %d", n, got[way][0])
			}
		}
		want := given{"text\x00\x00\x00\x00", 100, way == 1}
		if has := p.at(got[way][0]); has != want {
			t.Errorf("the program has %+v, want %+v", has, want)
		}
	}
	if got[0][0] == got[1][0] {
		t.Error("one number for reading and for writing")
	}
}

// TestSpacesAreApart: what one program has of a memory says nothing of another.
func TestSpacesAreApart(t *testing.T) {
	t.Parallel()
	p, q := &program{}, &program{}
	s, other, m := space(t, p), space(t, q), memory(t, 8, "")
	segment(t, other, memory(t, 8, ""), false)
	n, o := segment(t, s, m, false), segment(t, other, m, false)
	if n == o {
		t.Fatalf("both programs have it as %d", n)
	}
	q.counting[o].Add(1)
	if !m.Used() {
		t.Error("memory that one of two programs uses is not used")
	}
	other.Close()
	if m.Used() {
		t.Error("a program that is gone uses memory")
	}
	p.counting[n].Add(1)
	if !m.Used() {
		t.Error("memory that a program uses is not used, since another is gone")
	}
}

// TestNumbersAreUsedAgain only when the program has no object left that uses them.
func TestNumbersAreUsedAgain(t *testing.T) {
	t.Parallel()
	p := &program{}
	s := space(t, p)
	give := func() uint32 {
		m := memory(t, 8, "")
		n := segment(t, s, m, false)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the program has nothing", func() bool { has, _ := p.count(); return has == 0 })
		return n
	}
	first := give()
	p.counting[first].Add(1)
	second := give()
	if second == first {
		t.Fatalf("number %d was given while it was used", first)
	}
	p.counting[first].Store(0)
	seen := map[uint32]bool{}
	for range 50 {
		seen[give()] = true
	}
	if !seen[first] || len(seen) > 4 { // some, for a number is free only a moment after the program has forgotten it
		t.Errorf("numbers %v, want %d among few", seen, first)
	}
}

// TestNumbersEnd: a program has so many segments, and there is a remedy.
func TestNumbersEnd(t *testing.T) {
	t.Parallel()
	p := &program{}
	s := space(t, p)
	var all []*arrays.Memory
	for range calls.MaxSegments / 2 {
		m := memory(t, 1, "")
		segment(t, s, m, false)
		segment(t, s, m, true)
		all = append(all, m)
	}
	more := memory(t, 1, "")
	_, err := s.Segment(t.Context(), more.File, false)
	wants(t, err, core.ErrUnsupported)
	if err := all[7].Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is room", func() bool {
		_, err := s.Segment(t.Context(), more.File, false)
		return err == nil
	})
}

// TestProgramRefuses: memory that a program did not take can be given again, under another number.
func TestProgramRefuses(t *testing.T) {
	t.Parallel()
	p := &program{refuses: true}
	s, m := space(t, p), memory(t, 8, "")
	for range 3 {
		_, err := s.Segment(t.Context(), m.File, true)
		wants(t, err, errProgram)
	}
	p.mu.Lock()
	p.refuses = false
	p.mu.Unlock()
	n := segment(t, s, m, true)
	if has := p.at(n); !has.writable || m.Used() {
		t.Errorf("the program has %+v, used: %v", has, m.Used())
	}
}

// TestEmptyMemory is one for all arrays without elements.
func TestEmptyMemory(t *testing.T) {
	t.Parallel()
	p := &program{}
	s := arrays.NewSpace(p, p.word)
	var first uint32
	for i := range 3 {
		n, err := s.Empty(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = n
		}
		if n != first || p.at(n).size != 1 || p.at(n).writable {
			t.Errorf("memory for no elements is %d, %+v", n, p.at(n))
		}
	}
	s.Close()
	_, err := s.Empty(t.Context())
	wants(t, err, core.ErrClosed)
}

// TestEnds: a closed memory and a closed space give nothing. A space ends when the program has forgotten what was closed before.
func TestEnds(t *testing.T) {
	t.Parallel()
	p := &program{held: make(chan struct{})}
	s, m, n := space(t, p), memory(t, 8, ""), memory(t, 8, "")
	segment(t, s, m, false)
	segment(t, s, n, false)
	if err := m.Close(); err != nil { // the program is slow to forget it
		t.Fatal(err)
	}
	_, err := s.Segment(t.Context(), m.File, false)
	wants(t, err, core.ErrClosed)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.Close()
	}()
	select {
	case <-closed:
		t.Error("a space was closed while the program still forgets memory")
	default:
	}
	close(p.held)
	<-closed
	_, err = s.Segment(t.Context(), n.File, false)
	wants(t, err, core.ErrClosed)
	_, err = s.Segment(t.Context(), memory(t, 8, "").File, false)
	wants(t, err, core.ErrClosed)
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if has, _ := p.count(); has != 1 {
		t.Errorf("a program that is gone was asked to forget: it has %d", has)
	}
}

// TestCloseBesideSegment ends the space while others ask for numbers; the memory ends after them.
func TestCloseBesideSegment(t *testing.T) {
	t.Parallel()
	for range 50 {
		p := &program{}
		s := arrays.NewSpace(p, p.word)
		m, err := arrays.New(8)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				if _, err := s.Segment(t.Context(), m.File, i%2 == 0); err != nil {
					wants(t, err, core.ErrClosed)
				}
				m.Used()
			})
		}
		all.Go(s.Close)
		all.Wait()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
