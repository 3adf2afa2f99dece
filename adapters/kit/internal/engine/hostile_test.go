package engine_test

import (
	"context"
	_ "embed" // hostile.py
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

//go:embed testdata/hostile.py
var hostile string

// Whatever an object does, the answer is an error that says so, and the session lives on.
func TestHostileObjects(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, fakes+hostile, programtest.Options{})
	p.Finish(t)
	for _, tt := range []struct {
		name string
		kind error
		text string
	}{
		{"raises", core.ErrPython, "ValueError: not today"},
		{"exits", core.ErrPython, "SystemExit"},
		{"interrupts", core.ErrPython, "KeyboardInterrupt"},
		{"gives_none", core.ErrProtocol, "gave NoneType"},
		{"gives_itself", core.ErrProtocol, "gave __main__.Capsules"},
		{"device_none", core.ErrPython, "TypeError"},
		{"device_text", core.ErrPython, "TypeError"},
		{"device_empty", core.ErrPython, "IndexError"},
		{"device_huge", core.ErrPython, "OverflowError"},

		{"no_dict", core.ErrProtocol, "is list, expected dict"},
		{"no_typestr", core.ErrProtocol, `"typestr"`},
		{"number_typestr", core.ErrPython, "TypeError"},
		{"strange_typestr", core.ErrDType, "<q<q"},
		{"number_shape", core.ErrProtocol, ": int, expected tuple"},
		{"negative_shape", core.ErrLayout, "-4"},
		{"large_shape", core.ErrLayout, "larger than memory can be"},
		{"huge_shape", core.ErrPython, "OverflowError"},
		{"few_strides", core.ErrLayout, "1 strides for 2 axes"},
		{"large_strides", core.ErrLayout, "reach farther than memory can"},
		{"negative_data", core.ErrPython, "OverflowError"},
		{"huge_data", core.ErrPython, "OverflowError"},
		{"null_data", core.ErrPointer, "NULL"},
		{"dangling_data", core.ErrPointer, "nothing is mapped there"},
		{"last_data", core.ErrPointer, "cannot lie there"},
		{"wild_heap_data", core.ErrPointer, "has freed what was there, or never"},
		{"behind_heap_data", core.ErrPointer, "has freed what was there"},
		{"freed_heap_data[0]", core.ErrPointer, "has freed what was there"}, // kept for the next array
		{"freed_heap_data[1]", core.ErrPointer, "has freed what was there"}, // given back to the system
		{"text_data", core.ErrPython, "TypeError"},
		{"no_data", core.ErrPython, "TypeError"},
		{"far_offset", core.ErrPointer, "a buffer of 64"},
		{"text_version", core.ErrPython, "TypeError"},
		{"raising_property", core.ErrPython, "OSError: the disk is full"},
		{"dict_of_traps", core.ErrProtocol, `"shape"`},

		{"everything", core.ErrDevice, "on cuda:0"}, // it has a CUDA array interface too
		{"everything.a[0]['b'].c", core.ErrDevice, "on cuda:0"},
		{"deep", core.ErrPython, "RecursionError"},
		{"deep.x", core.ErrPython, "RecursionError"},
		{"trapped", core.ErrPython, "a trap"},
		{"trapped.x", core.ErrPython, "a trap"},
		{"trapped[0]", core.ErrNotFound, "trapped has no [0]"},
		{"pretender", core.ErrUnsupported, "__main__.Pretender is not an array"},
	} {
		_, err := p.View(t, tt.name, contract.Request{NoWait: true})
		wants(t, tt.name, err, tt.kind, tt.text)
	}
	if x := first(t, p, "good"); x != 0 {
		t.Errorf("an array behind them all begins with %v", x)
	}
	names := map[string]error{}
	for e, err := range p.Arrays(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names[e.Name] = e.Err
	}
	if err, ok := names["good"]; !ok || err != nil {
		t.Errorf("good is listed: %v, %v", ok, err)
	}
	if err := names["raises"]; !errors.Is(err, core.ErrPython) {
		t.Errorf("raises is listed with %v", err)
	}
}

// A pointer that is not aligned is unusual, not wrong.
func TestUnalignedTensor(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, fakes+hostile, programtest.Options{})
	p.Finish(t)
	v, err := p.View(t, "odd_data", contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := core.Slice[float64](v); !errors.Is(err, core.ErrLayout) {
		t.Errorf("a slice of float64 at an odd address: %v", err)
	}
	// Elements 0.0 and 1.0, read from the second byte of memory on: 1.0 is 0x3ff00000_00000000.
	if x, err := core.At[float64](v, 1); err != nil || x == 1 {
		t.Errorf("element 1: %v (%v)", x, err)
	}
}

// A capsule belongs to whom took it first. An unknown object is asked twice, so this one is found out at once.
func TestCapsuleGivenTwice(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, fakes+hostile, programtest.Options{})
	p.Finish(t)
	_, err := p.View(t, "consumed", contract.Request{})
	wants(t, "a capsule that is given twice", err, core.ErrProtocol, `"used_dltensor_versioned"`)
	settled(t, p, func(log map[string]fate) error {
		if f := log["consumed"]; f.Deleted != 1 {
			return fmt.Errorf("the tensor given twice: %+v", f)
		}
		return nil
	})
}

// What never returns ends with the caller's patience, and holds nobody else up.
func TestObjectThatHangs(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, fakes+hostile+`
let_go = threading.Event()
hangs = Capsules(let_go.wait)
`, programtest.Options{})
	p.Finish(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := p.Lease(ctx, "hangs", contract.Request{})
	wants(t, "hangs", err, context.DeadlineExceeded)
	if x := first(t, p, "good"); x != 0 {
		t.Errorf("meanwhile, another array begins with %v", x)
	}
}
