package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/internal/wire/wiretest"
)

// failing is a producer whose Lease gives the error of a name.
type failing struct {
	*coretest.Producer
	errs map[string]error
}

func (f failing) Lease(_ context.Context, name string, _ contract.Request) (contract.Lease, error) {
	return contract.Lease{}, f.errs[name]
}

// categories are all that an error can be of, in the order of core/errors.go.
func categories() map[string]error {
	return map[string]error{
		"not found": core.ErrNotFound, "closed": core.ErrClosed, "read-only": core.ErrReadOnly, "dtype": core.ErrDType,
		"layout": core.ErrLayout, "device": core.ErrDevice, "pointer": core.ErrPointer, "not shared": core.ErrNotShared,
		"unsupported": core.ErrUnsupported, "version": core.ErrVersion, "unavailable": core.ErrUnavailable,
		"python": core.ErrPython, "config": core.ErrConfig, "protocol": core.ErrProtocol,
		"deadline": context.DeadlineExceeded,
	}
}

// TestEveryCategoryCrosses sends every category through gRPC and asserts that all that the error
// knew arrives, and nothing else.
func TestEveryCategoryCrosses(t *testing.T) {
	t.Parallel()
	errs := make(map[string]error)
	for name, kind := range categories() {
		errs[name] = &core.Error{
			Op: "pin", Program: "camera", Object: "frames[0]", Adapter: "numpy", Kind: kind, Quirk: "numpy.q",
			Reason: contract.ReasonFrozen, Remedy: "do it otherwise", Err: errors.New("the cause"),
		}
	}
	client := wiretest.Connect(t, failing{coretest.NewProducer(t), errs})
	for name, kind := range categories() {
		want, _ := errors.AsType[*core.Error](errs[name])
		_, err := client.Lease(t.Context(), name, contract.Request{})
		got, ok := errors.AsType[*core.Error](err)
		if !ok {
			t.Errorf("%s: arrived as %T", name, err)
			continue
		}
		for other, k := range categories() {
			if errors.Is(err, k) != (other == name) {
				t.Errorf("%s: errors.Is for %s is %v", name, other, other != name)
			}
		}
		if !got.Remote || !errors.Is(got.Kind, kind) || got.Err == nil || got.Err.Error() != "the cause" {
			t.Errorf("%s: arrived as %+v", name, got)
		}
		plain := *got
		plain.Remote, plain.Err = false, want.Err
		if plain != *want {
			t.Errorf("%s: %+v arrived as %+v", name, *want, plain)
		}
		if err.Error() != want.Error() {
			t.Errorf("%s: text %q arrived as %q", name, want, err)
		}
	}
}

func TestErrorsOfOtherFormsCross(t *testing.T) {
	t.Parallel()
	python := &core.PythonError{
		Type: "ValueError", Message: "bad", Traceback: "Traceback:\n  ValueError: bad\n", Notes: []string{"one", ""},
		Cause: &core.PythonError{Type: "KeyError", Context: &core.PythonError{Type: "OSError", Message: "first", Traceback: "OSError: first\n", Notes: []string{"n"}}},
		Group: []*core.PythonError{{Type: "a", Group: []*core.PythonError{{Type: "b"}}}, {Type: "c", Context: &core.PythonError{Type: "d"}}},
	}
	inner := &core.Error{Op: "read", Object: "x", Kind: core.ErrNotFound, Err: errors.New("no x"), Remedy: "look"}
	errs := map[string]error{
		"bare sentinel":    core.ErrDevice,
		"wrapped sentinel": fmt.Errorf("around: %w", core.ErrLayout),
		"wrapped":          fmt.Errorf("around: %w", inner),
		"wrapped bare":     fmt.Errorf("around: %w", &core.Error{Op: "read", Kind: core.ErrClosed}),
		"nested":           &core.Error{Op: "lease", Kind: core.ErrUnavailable, Err: inner},
		"python":           python,
		"python cause":     &core.Error{Op: "lease", Object: "y", Kind: core.ErrPython, Err: python},
		"python around":    &core.Error{Op: "lease", Kind: core.ErrPython, Err: fmt.Errorf("line 3: %w", python)},
		"no category":      io.ErrUnexpectedEOF,
		"bad text":         &core.Error{Op: "op\xff", Kind: core.ErrConfig, Err: errors.New("caf\xe9")},
		"unknown reason":   &core.Error{Op: "lease", Kind: core.ErrNotShared, Reason: "unknown"},
		"no cause":         &core.Error{Op: "lease", Kind: core.ErrReadOnly},
	}
	client := wiretest.Connect(t, failing{coretest.NewProducer(t), errs})
	for name, c := range map[string]struct {
		is   []error
		text string
	}{
		"bare sentinel":    {[]error{core.ErrDevice}, "lease bare sentinel: wrong device"},
		"wrapped sentinel": {[]error{core.ErrLayout}, "lease wrapped sentinel: layout not supported: around: layout not supported"},
		"wrapped":          {[]error{core.ErrNotFound}, "read x: not found: around: no x; look"},
		"wrapped bare":     {[]error{core.ErrClosed}, "read wrapped bare: closed: around"},
		"nested":           {[]error{core.ErrUnavailable, core.ErrNotFound}, "lease nested: unavailable: read x: not found: no x; look"},
		"python":           {[]error{core.ErrPython}, "lease python: python error: ValueError: bad"},
		"python cause":     {[]error{core.ErrPython}, "lease y: python error: ValueError: bad"},
		"python around":    {[]error{core.ErrPython}, "lease python around: python error: line 3: ValueError: bad"},
		"no category":      {[]error{core.ErrProtocol}, "lease no category: protocol violation: error without a category: unexpected EOF"},
		"bad text":         {[]error{core.ErrConfig}, "op\uFFFD bad text: bad configuration: caf\uFFFD"},
		"unknown reason":   {[]error{core.ErrNotShared}, "lease unknown reason: memory cannot be shared"},
		"no cause":         {[]error{core.ErrReadOnly}, "lease no cause: read-only"},
	} {
		_, err := client.Lease(t.Context(), name, contract.Request{})
		for _, kind := range c.is {
			if !errors.Is(err, kind) {
				t.Errorf("%s: %v is not %v", name, err, kind)
			}
		}
		if err == nil || err.Error() != c.text {
			t.Errorf("%s: arrived as %q, want %q", name, err, c.text)
		}
		if strings.HasPrefix(name, "python") {
			if p, ok := errors.AsType[*core.PythonError](err); !ok || !reflect.DeepEqual(p, python) {
				t.Errorf("%s: the exception arrived as %+v", name, p)
			}
		}
	}
}

func TestLongTracebackKeepsBothEnds(t *testing.T) {
	t.Parallel()
	traceback := "Traceback (most recent call last):\n" + strings.Repeat("  File \"deep.py\"\n", 1<<16) + "RecursionError: deep\n"
	errs := map[string]error{"deep": &core.PythonError{
		Type: "RecursionError", Message: strings.Repeat("m", 1<<20), Traceback: traceback,
	}}
	client := wiretest.Connect(t, failing{coretest.NewProducer(t), errs})
	_, err := client.Lease(t.Context(), "deep", contract.Request{})
	p, ok := errors.AsType[*core.PythonError](err)
	if !ok {
		t.Fatalf("arrived as %v", err)
	}
	if !strings.HasPrefix(p.Traceback, traceback[:100]) || !strings.HasSuffix(p.Traceback, traceback[len(traceback)-100:]) ||
		len(p.Traceback) > 1<<17 {
		t.Errorf("traceback of %d bytes: %.40q", len(p.Traceback), p.Traceback)
	}
}

// TestContextsEndCalls checks that who gives a call up gets his own context's error, whatever else
// happens.
func TestContextsEndCalls(t *testing.T) {
	t.Parallel()
	client := wiretest.Connect(t, coretest.NewProducer(t))
	cause := errors.New("the user pressed a key")
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	expired, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	for name, c := range map[string]struct {
		ctx  context.Context //nolint:containedctx // a table of contexts
		want []error
	}{
		"canceled": {canceled, []error{context.Canceled, cause}},
		"expired":  {expired, []error{context.DeadlineExceeded}},
	} {
		for call, err := range map[string]error{
			"info":       second(client.Info(c.ctx)),
			"lease":      second(client.Lease(c.ctx, "missing", contract.Request{})),
			"descriptor": second(client.Descriptor(c.ctx, 1, false)),
			"release":    client.Release(c.ctx, 1),
			"arrays":     listError(c.ctx, client),
		} {
			e, ok := errors.AsType[*core.Error](err)
			if !ok || e.Remote {
				t.Errorf("%s %s: error %#v", name, call, err)
			}
			for _, want := range c.want {
				if !errors.Is(err, want) {
					t.Errorf("%s %s: error %v, want %v", name, call, err, want)
				}
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

func listError(ctx context.Context, p contract.Producer) (last error) {
	for _, err := range p.Arrays(ctx) {
		last = err
	}
	return last
}

// TestForeignStatus is what a client makes of errors that no server of ours sends.
func TestForeignStatus(t *testing.T) {
	t.Parallel()
	for code, want := range map[codes.Code]error{
		codes.Unimplemented: core.ErrVersion, codes.Unavailable: core.ErrUnavailable, codes.Canceled: core.ErrUnavailable,
		codes.DeadlineExceeded: context.DeadlineExceeded, codes.Internal: core.ErrProtocol,
		codes.ResourceExhausted: core.ErrProtocol, codes.Unknown: core.ErrProtocol,
	} {
		server := &scripted{infoError: status.Error(code, "said so")}
		link := server.dial(t, wire.ClientOptions{Program: "camera"})
		_, err := link.Client.Info(t.Context())
		e, ok := errors.AsType[*core.Error](err)
		if !ok || !errors.Is(err, want) || e.Program != "camera" || e.Remote {
			t.Errorf("%v: error %v, want %v", code, err, want)
		}
	}
}
