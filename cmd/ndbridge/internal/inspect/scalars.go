package inspect

import (
	"context"
	"slices"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/numbers"
)

const (
	scalarsEvery = 200 * time.Millisecond
	// maxScalars is how many scalars are followed: the first of the list.
	maxScalars = 128
)

// isScalar reports whether an array is one number.
func isScalar(e contract.Entry) bool {
	return e.Err == nil && e.Layout.Len() == 1 && numbers.Known(e.Layout.DType()) && !e.Layout.DType().Packed()
}

// scalar is one that is followed.
type scalar struct {
	source *hostplugin.Source
	view   *core.View
}

// value gives the number that the scalar is now.
func (s *scalar) value(ctx context.Context) (float64, error) {
	v, _, err := s.source.Refresh(ctx, s.view, hostplugin.NoWait(), hostplugin.AllowCopy())
	s.view = v
	if err != nil {
		return 0, err
	}
	raw := make([]byte, v.NBytes())
	if err = v.Wait(ctx); err == nil {
		_, err = core.CopyBytes(ctx, raw, v)
	}
	if err != nil || v.Len() != 1 {
		return 0, err
	}
	return numbers.Append(nil, raw, v.DType(), 1)[0], nil
}

func (s *scalar) close() {
	if s.view != nil {
		_ = s.view.Close() // the session reports what matters
	}
}

// followScalars reads all scalars again and again, while somebody looks.
func (h *hub) followScalars(ctx context.Context) {
	followed := map[string]*scalar{}
	defer func() {
		for _, s := range followed {
			s.close()
		}
	}()
	for h.pace.wait(ctx, scalarsEvery) == nil {
		h.mu.Lock()
		names, idle := h.scalarNames, len(h.clients) == 0
		h.mu.Unlock()
		if idle || len(names) == 0 {
			continue
		}
		for name, s := range followed {
			if !slices.Contains(names, name) {
				s.close()
				delete(followed, name)
			}
		}
		h.pace.spend(func() { h.readScalars(ctx, names, followed) })
	}
}

func (h *hub) readScalars(ctx context.Context, names []string, followed map[string]*scalar) {
	asking, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for _, name := range names {
		s := followed[name]
		if s == nil {
			source, err := h.options.Session.Source(name)
			if err != nil {
				return
			}
			s = &scalar{source: source}
			followed[name] = s
		}
		x, err := s.value(asking)
		if asking.Err() != nil {
			return
		}
		if err != nil {
			continue // it comes again, or the next list is without it
		}
		h.mu.Lock()
		if h.scalars[name] == nil {
			h.scalars[name] = &series{}
		}
		h.scalars[name].add(time.Now(), x)
		h.mu.Unlock()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.clients {
		h.offerScalars(c)
	}
}
