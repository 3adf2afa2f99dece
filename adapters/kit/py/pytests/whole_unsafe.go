package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// words are the numbers of 8 bytes of a mapping.
func words(m *shm.Mapping) []atomic.Uint64 {
	b := m.Bytes()
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

// testWholeCopies: memory that is written meanwhile is copied a number at a time, whatever is copied with it.
func (l *library) testWholeCopies(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const size, fresh = 8 << 10, 0x4040404040404040 // which shares no byte with 0
	one, source, target := mapping(t, 1), mapping(t, size), mapping(t, size)
	thread, watches := l.watchCrowd(t)
	checks := []py.Check{
		{Watch: watches[0], Copy: py.Copy{From: one.Addr(), To: one.Addr(), Size: 1}},
		{Watch: watches[1], Copy: py.Copy{From: source.Addr(), To: target.Addr(), Size: size}},
	}
	live, got := words(source), words(target)
	var writer sync.WaitGroup
	var done atomic.Bool
	writer.Go(func() {
		for !done.Load() {
			for _, word := range []uint64{fresh, 0} {
				for i := range live {
					live[i].Store(word)
				}
			}
		}
	})
	wrong := map[uint64]int{}
	for range 2000 {
		if thread.Check(checks); !checks[1].Same {
			t.Error("it was not copied")
			break
		}
		for i := range got {
			if x := got[i].Load(); x != 0 && x != fresh {
				wrong[x]++
			}
		}
	}
	done.Store(true)
	writer.Wait()
	if len(wrong) > 0 {
		t.Errorf("never there: %x", wrong)
	}
	l.do(t, func(p *python) {
		for _, w := range watches {
			w.Drop(p.GIL)
		}
	})
}
