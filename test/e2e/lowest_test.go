package e2e

import (
	"fmt"
	"testing"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// lowest is a program that goes by what Unix promises: a number that it has closed is free, and the lowest that is free
// is the next. It does so as fast as it can, and has arrays that are copied into files of as many sizes, and then shared.
const lowest = `
import os, threading, numpy as np, remote
packed = [np.frombuffer(b"\7" * int(70000 * 2 ** (i / 4)), "u1") for i in range(32)]
wrong, over = [], False

def turn():
    saved = os.dup(0)
    os.close(0)
    got = os.open("/", os.O_RDONLY)
    if got != 0:
        wrong.append(got)
        os.close(got)
    os.dup2(saved, 0)
    os.close(saved)

def turns():
    while not over:
        turn()

thread = threading.Thread(target=turns)
remote.serve()
`

// TestProgramGetsTheLowestDescriptor: the program's numbers are as if nobody looked, and what it puts at one of them is
// never taken for the plugin's file, nor that for the program's.
func TestProgramGetsTheLowestDescriptor(t *testing.T) { startedAndAttached(t, getsTheLowestDescriptor) }

func getsTheLowestDescriptor(t *testing.T, attached bool) {
	run := harness.Start(t, lowest, harness.Options{Attached: attached, Configs: promoting})
	run.Remote.Exec(t, "thread.start()") // not earlier: to accept this connection takes the lowest number, too
	promoted := 0
	for range 3 {
		for i := range 32 { // more sizes than files are kept
			v := run.View(t, fmt.Sprintf("packed[%d]", i))
			for at, got := range slice[uint8](t, v) {
				if got != 7 {
					t.Fatalf("packed[%d] has %d at %d", i, got, at)
				}
			}
			if v.Route() == contract.RouteSharedHeap {
				promoted++
			}
			closeView(t, v)
		}
	}
	if promoted == 0 {
		t.Error("no array became shared")
	}
	run.Remote.Exec(t, "over = True; thread.join()")
	if wrong := harness.Eval[[]int](t, run.Remote, "wrong"); len(wrong) > 0 {
		t.Errorf("%d times another number was free, as %d", len(wrong), wrong[0])
	}
}
