package inspect

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/render"
	"github.com/ndbridge/ndbridge/stats"
)

const (
	// maxPinned is how large an array may be that is kept for a comparison.
	maxPinned = 1 << 30
	// pinStays is for how long it stays when no page looks at the array any more: people look at others meanwhile, or reload the page.
	pinStays = 10 * time.Minute
)

// pins are the arrays that were pinned and at which no page looks.
type pins struct {
	most int64 // bytes of all of them

	mu   sync.Mutex
	kept []pin // the one that was left first, first
}

type pin struct {
	name  string
	view  *core.View // memory of this process
	since time.Time
}

// leave keeps what is pinned under a name, which nobody looks at any more.
func (p *pins) leave(name string, v *core.View) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(name)
	p.kept = append(p.kept, pin{name, v, time.Now()})
	p.age()
	time.AfterFunc(pinStays, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.age()
	})
}

// take gives what was pinned under a name, or nil. It is the caller's then.
func (p *pins) take(name string) *core.View {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.remove(name)
}

// close drops all.
func (p *pins) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.kept) > 0 {
		p.drop(p.kept[0].name)
	}
}

// age drops what was left too long ago, and the oldest if all together are too large. The caller holds the lock.
func (p *pins) age() {
	var bytes int64
	for _, k := range p.kept {
		bytes += k.view.NBytes()
	}
	for len(p.kept) > 0 && (bytes > p.most || time.Since(p.kept[0].since) >= pinStays) {
		bytes -= p.kept[0].view.NBytes()
		p.drop(p.kept[0].name)
	}
}

// drop closes what is kept under a name. The caller holds the lock.
func (p *pins) drop(name string) {
	if v := p.remove(name); v != nil {
		_ = v.Close() // memory of this process
	}
}

// remove gives what is kept under a name, or nil, and keeps it no longer. The caller holds the lock.
func (p *pins) remove(name string) *core.View {
	for i, k := range p.kept {
		if k.name == name {
			p.kept = slices.Delete(p.kept, i, i+1)
			return k.view
		}
	}
	return nil
}

// keep does what was wished with the pin.
func (w *reading) keep(ctx context.Context) {
	w.hub.mu.Lock()
	wish := w.wish
	w.wish = nil
	w.hub.mu.Unlock()
	if w.pinned == nil {
		w.pinned = w.hub.pins.take(w.name)
	}
	if wish == nil {
		return
	}
	if w.pinned != nil {
		_ = w.pinned.Close() // memory of this process
		w.pinned = nil
	}
	w.unkept = nil
	switch {
	case !*wish:
	case w.view.NBytes() > maxPinned:
		w.unkept = fmt.Errorf("pin %s: it has %s, and no more than %s are kept; pin a part of it, such as %s[:100]", w.name, render.Size(w.view.NBytes()), render.Size(maxPinned), w.name)
	default:
		w.pinned, w.unkept = stats.Keep(ctx, w.view)
	}
	w.told, w.drawn = time.Time{}, time.Time{}
}
