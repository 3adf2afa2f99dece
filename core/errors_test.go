package core_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// sentinels lists the categories with their texts.
var sentinels = []struct {
	err  error
	text string
}{
	{core.ErrNotFound, "not found"},
	{core.ErrClosed, "closed"},
	{core.ErrReadOnly, "read-only"},
	{core.ErrDType, "wrong dtype"},
	{core.ErrLayout, "layout not supported"},
	{core.ErrDevice, "wrong device"},
	{core.ErrPointer, "invalid pointer"},
	{core.ErrNotShared, "memory cannot be shared"},
	{core.ErrUnsupported, "unsupported operation"},
	{core.ErrVersion, "incompatible version"},
	{core.ErrUnavailable, "unavailable"},
	{core.ErrPython, "python error"},
	{core.ErrConfig, "bad configuration"},
	{core.ErrProtocol, "protocol violation"},
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "deadline exceeded"},
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	cause := errors.New("the cause")
	for _, tc := range []struct {
		err  core.Error
		want string
	}{
		{core.Error{}, ""},
		{core.Error{Op: "view"}, "view"},
		{core.Error{Kind: core.ErrClosed}, "closed"},
		{core.Error{Err: cause}, "the cause"},
		{core.Error{Op: "view", Kind: core.ErrClosed}, "view: closed"},
		{core.Error{Op: "view", Object: "frame", Kind: core.ErrClosed}, "view frame: closed"},
		{core.Error{Op: "start", Program: "camera", Kind: core.ErrVersion}, "start camera: incompatible version"},
		{core.Error{Op: "view", Program: "camera", Object: "frame", Kind: core.ErrNotFound}, "view camera/frame: not found"},
		{
			core.Error{Op: "view", Kind: core.ErrNotShared, Reason: contract.ReasonFrozen, Err: cause, Remedy: "allow a copy"},
			"view: memory cannot be shared: frozen-by-fork: the cause; allow a copy",
		},
		{core.Error{Op: "view", Kind: core.ErrClosed, Err: core.ErrClosed}, "view: closed"},
		{core.Error{Op: "view", Err: core.ErrClosed, Quirk: "numpy.masked"}, "view: closed [numpy.masked]"},
		{core.Error{
			Op: "lease", Program: "torch", Object: "weights", Adapter: "torch", Kind: core.ErrNotShared,
			Err: errors.New("tensor requires grad"), Remedy: "publish t.detach()", Quirk: "torch.requires-grad", Remote: true,
		}, "lease torch/weights: memory cannot be shared: tensor requires grad; publish t.detach() [torch.requires-grad]"},
	} {
		if got := tc.err.Error(); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

func TestErrorUnwrap(t *testing.T) {
	t.Parallel()
	cause := &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrPermission}
	err := fmt.Errorf("outer: %w", &core.Error{Op: "view", Kind: core.ErrUnavailable, Err: cause})
	for _, target := range []error{core.ErrUnavailable, fs.ErrPermission, cause} {
		if !errors.Is(err, target) {
			t.Errorf("%v does not match %v", err, target)
		}
	}
	if errors.Is(err, core.ErrClosed) {
		t.Errorf("%v matches closed", err)
	}
	if got, ok := errors.AsType[*fs.PathError](err); !ok || got != cause {
		t.Errorf("the cause of %v is lost: %v", err, got)
	}
	if n := len((&core.Error{}).Unwrap()); n != 0 {
		t.Errorf("an empty error wraps %d", n)
	}
}

func TestCategory(t *testing.T) {
	t.Parallel()
	for _, s := range sentinels {
		for name, err := range map[string]error{
			"bare":    s.err,
			"wrapped": fmt.Errorf("more: %w", s.err),
			"kind":    &core.Error{Op: "view", Kind: s.err},
			"cause":   &core.Error{Op: "view", Err: s.err},
			"deep":    fmt.Errorf("a: %w", &core.Error{Err: &core.Error{Kind: s.err}}),
			"over another cause": &core.Error{
				Kind: s.err, Err: &core.Error{Kind: core.ErrClosed, Err: core.ErrNotFound},
			},
		} {
			if got := core.Category(err); got != s.text {
				t.Errorf("%s %q has the category %q", name, s.text, got)
			}
		}
	}
	for _, err := range []error{nil, errors.New("other"), &core.Error{}, &core.Error{Kind: errors.New("other")}} {
		if got := core.Category(err); got != "" {
			t.Errorf("%v has the category %q", err, got)
		}
	}
	timeout := &core.Error{Kind: core.ErrUnavailable, Err: context.DeadlineExceeded}
	if got := core.Category(timeout); got != "unavailable" {
		t.Errorf("%v has the category %q", timeout, got)
	}
	if !errors.Is(core.ErrUnsupported, errors.ErrUnsupported) {
		t.Error("ErrUnsupported is not the standard one")
	}
}

// TestCategoryOfAllPairs holds the contract for each pair of sentinels in each way of combining them: there is
// exactly one category, it is the one that decides, and the error matches it.
func TestCategoryOfAllPairs(t *testing.T) {
	t.Parallel()
	ends := func(err error) bool {
		return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	}
	for _, a := range sentinels {
		for _, b := range sentinels {
			first := a
			if ends(a.err) && !ends(b.err) {
				first = b
			}
			for name, tc := range map[string]struct {
				err  error
				want string
			}{
				"kind over a cause":    {&core.Error{Kind: a.err, Err: b.err}, a.text},
				"kind over a kind":     {&core.Error{Kind: a.err, Err: &core.Error{Kind: b.err}}, a.text},
				"kind in a wrapper":    {fmt.Errorf("more: %w", &core.Error{Kind: a.err, Err: b.err}), a.text},
				"kind below no kind":   {&core.Error{Op: "view", Err: fmt.Errorf("more: %w", &core.Error{Kind: a.err, Err: b.err})}, a.text},
				"joined sentinels":     {errors.Join(a.err, b.err), first.text},
				"two in one text":      {fmt.Errorf("%w: %w", a.err, b.err), first.text},
				"joined below no kind": {&core.Error{Err: errors.Join(a.err, b.err)}, first.text},
				"joined after another": {errors.Join(fs.ErrPermission, fmt.Errorf("more: %w", a.err), b.err), first.text},
			} {
				got := core.Category(tc.err)
				if got != tc.want {
					t.Errorf("%s, %q and %q: category %q, want %q", name, a.text, b.text, got, tc.want)
				}
				for _, s := range sentinels {
					if s.text == got && !errors.Is(tc.err, s.err) {
						t.Errorf("%s, %q and %q: %v does not match its category %q", name, a.text, b.text, tc.err, got)
					}
				}
			}
		}
	}
}

func TestPythonError(t *testing.T) {
	t.Parallel()
	err := &core.PythonError{Type: "ValueError", Message: "no such frame", Traceback: "Traceback ..."}
	wrapped := &core.Error{Op: "lease", Object: "frame", Kind: core.ErrPython, Err: err}
	if got, want := wrapped.Error(), "lease frame: python error: ValueError: no such frame"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !errors.Is(err, core.ErrPython) || errors.Is(err, core.ErrClosed) || core.Category(err) != "python error" {
		t.Errorf("%v has the category %q", err, core.Category(err))
	}
	if got, ok := errors.AsType[*core.PythonError](error(wrapped)); !ok || got != err {
		t.Errorf("the exception is lost: %v", got)
	}
	behind := &core.PythonError{Type: "KeyError", Context: &core.PythonError{Type: "OSError"}}
	err.Cause, err.Group = behind, []*core.PythonError{{Type: "A", Cause: &core.PythonError{Type: "B"}}, nil, {Type: "C"}}
	if got, _ := errors.AsType[*core.PythonError](error(wrapped)); got != err || errors.Is(err, behind) {
		t.Errorf("%v is what it came from", err)
	}
	var all, some []string
	for e := range err.All() {
		all = append(all, e.Type)
	}
	for e := range err.All() {
		if some = append(some, e.Type); e.Type == "A" {
			break
		}
	}
	if fmt.Sprint(all, some) != "[ValueError KeyError OSError A B C] [ValueError KeyError OSError A]" {
		t.Errorf("%v, %v", all, some)
	}
	if got := (&core.PythonError{Type: "KeyboardInterrupt"}).Error(); got != "KeyboardInterrupt" {
		t.Errorf("%q", got)
	}
}
