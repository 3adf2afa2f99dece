package leases

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// program is a client of a program in which an array appears at some time.
type program struct {
	Program
	begun   time.Time
	appears time.Duration
	remedy  func(after time.Duration) string
	slow    bool // to grant takes long, once the name is there

	mu       sync.Mutex
	released []contract.LeaseID
}

func (p *program) Lease(ctx context.Context, _ string, req contract.Request) (contract.Lease, error) {
	after := time.Since(p.begun)
	wait := time.After(p.appears - after)
	if req.NoWait && after < p.appears {
		return contract.Lease{}, &core.Error{Kind: core.ErrNotFound, Err: errors.New("no such variable"), Remedy: p.remedy(after)}
	}
	select {
	case <-wait:
	case <-ctx.Done():
		return contract.Lease{}, &core.Error{Op: "lease", Kind: ctx.Err()}
	}
	if req.NoWait {
		return contract.Lease{ID: 2}, nil
	}
	if p.slow {
		time.Sleep(time.Minute)
	}
	return contract.Lease{ID: 1}, nil
}

func (p *program) Release(_ context.Context, ids ...contract.LeaseID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released = append(p.released, ids...)
	return nil
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		program  *program
		give     time.Duration // the caller's patience; 0: none
		req      contract.Request
		kind     error
		remedy   string
		says     []string // records, in order
		released int
	}{
		"at once": {program: &program{}},
		"soon":    {program: &program{appears: interval - 1}},
		"later":   {program: &program{appears: 2*interval - 1}, says: []string{"level=INFO msg=\"still waiting for an array\" array=fram cause=\"no such variable\"\n"}},
		"much later": {
			program: &program{appears: 10*interval - 1},
			says:    []string{"level=INFO "},
		},
		"meant another": {
			program: &program{appears: time.Hour, remedy: func(time.Duration) string { return `did you mean "frame"?` }},
			give:    5 * interval, kind: context.DeadlineExceeded, remedy: `did you mean "frame"?`,
			says: []string{"level=WARN msg=\"still waiting for an array\" array=fram cause=\"no such variable\" remedy=\"did you mean \\\"frame\\\"?\"\n"},
		},
		"the newest remedy": {
			program: &program{appears: time.Hour, remedy: func(after time.Duration) string {
				return map[bool]string{true: `did you mean "frames"?`}[after > 3*interval]
			}},
			give: 5 * interval, kind: context.DeadlineExceeded, remedy: `did you mean "frames"?`,
			says: []string{"level=INFO ", "level=WARN "},
		},
		"given up early": {
			program: &program{appears: time.Hour, remedy: func(time.Duration) string { return "x" }},
			give:    interval - 1, kind: context.DeadlineExceeded,
		},
		"no waiting":      {program: &program{appears: time.Hour}, req: contract.Request{NoWait: true}, kind: core.ErrNotFound},
		"long for others": {program: &program{slow: true}, released: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := test.program
				p.begun = time.Now()
				if p.remedy == nil {
					p.remedy = func(time.Duration) string { return "" }
				}
				var log bytes.Buffer
				logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
					if a.Key == slog.TimeKey {
						return slog.Attr{}
					}
					return a
				}}))
				ctx := t.Context()
				if test.give > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.give)
					defer cancel()
				}
				release := func(id contract.LeaseID) {
					if err := p.Release(ctx, id); err != nil {
						t.Error(err)
					}
				}
				lease, err := (&hinting{p, logger, release}).Lease(ctx, "fram", test.req)
				if test.kind == nil && (err != nil || lease.ID != 1) || !errors.Is(err, test.kind) {
					t.Errorf("Lease = %v, %v", lease.ID, err)
				}
				if e, ok := errors.AsType[*core.Error](err); ok && e.Remedy != test.remedy {
					t.Errorf("the remedy is %q", e.Remedy)
				}
				lines := strings.SplitAfter(log.String(), "\n")
				if len(lines) != len(test.says)+1 {
					t.Fatalf("the log says\n%s", &log)
				}
				for i, want := range test.says {
					if !strings.HasPrefix(lines[i], want) {
						t.Errorf("the log says %s, want %s", lines[i], want)
					}
				}
				if len(p.released) != test.released {
					t.Errorf("released %v", p.released)
				}
			})
		})
	}
}
