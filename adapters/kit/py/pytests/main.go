// Command pytests is a library of tests that run inside a Python interpreter, for only there is the C
// API. The test of package py loads it into each interpreter at hand.
package main

import "C"

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// library is what the C functions share: there is one interpreter in a process, and C calls functions,
// not methods.
type library struct {
	interp *py.Interp
	hammer hammer
}

var lib library

func (l *library) tests() []testing.InternalTest {
	return []testing.InternalTest{
		{Name: "Describe", F: l.testDescribe},
		{Name: "Numbers", F: l.testNumbers},
		{Name: "Text", F: l.testText},
		{Name: "Kinds", F: l.testKinds},
		{Name: "Containers", F: l.testContainers},
		{Name: "Items", F: l.testItems},
		{Name: "Attributes", F: l.testAttributes},
		{Name: "Calls", F: l.testCalls},
		{Name: "Modules", F: l.testModules},
		{Name: "Loaded", F: l.testLoaded},
		{Name: "NoMain", F: l.testNoMain},
		{Name: "Names", F: l.testNames},
		{Name: "Metaclass", F: l.testMetaclass},
		{Name: "Exceptions", F: l.testExceptions},
		{Name: "ExceptionsBehind", F: l.testExceptionsBehind},
		{Name: "ExceptionsWithoutTraceback", F: l.testExceptionsWithoutTraceback},
		{Name: "ExceptionsWithoutModule", F: l.testExceptionsWithoutModule},
		{Name: "Raise", F: l.testRaise},
		{Name: "Buffers", F: l.testBuffers},
		{Name: "BufferHoldsMemory", F: l.testBufferHoldsMemory},
		{Name: "Capsules", F: l.testCapsules},
		{Name: "Deleter", F: l.testDeleter},
		{Name: "KeepAndDrop", F: l.testKeepAndDrop},
		{Name: "NoReferenceLeaks", F: l.testNoReferenceLeaks},
		{Name: "EndedContext", F: l.testEndedContext},
		{Name: "BusyInterpreter", F: l.testBusyInterpreter},
		{Name: "StuckCallsLeaveRoom", F: l.testStuckCallsLeaveRoom},
		{Name: "ThreadsAreBounded", F: l.testThreadsAreBounded},
		{Name: "Commit", F: l.testCommit},
		{Name: "Unlocked", F: l.testUnlocked},
		{Name: "Concurrent", F: l.testConcurrent},
		{Name: "Fingerprint", F: l.testFingerprint},
		{Name: "FingerprintOfNumbers", F: l.testFingerprintOfNumbers},
		{Name: "FingerprintOfDictionary", F: l.testFingerprintOfDictionary},
		{Name: "FingerprintOfMemory", F: l.testFingerprintOfMemory},
		{Name: "FingerprintRefused", F: l.testFingerprintRefused},
		{Name: "Under", F: l.testUnder},
		{Name: "Copies", F: l.testCopies},
		{Name: "WholeCopies", F: l.testWholeCopies},
		{Name: "Steps", F: l.testSteps},
		{Name: "Fields", F: l.testFields},
		{Name: "Beside", F: l.testBeside},
		{Name: "Steady", F: l.testSteady},
		{Name: "StepsInTurn", F: l.testStepsInTurn},
		{Name: "ChangedClass", F: l.testChangedClass},
		{Name: "Globals", F: l.testGlobals},
	}
}

func (l *library) open() error {
	var err error
	if l.interp == nil {
		l.interp, err = py.Open()
	}
	return err
}

// ndTest runs the tests and ends the process. It is called without the GIL.
//
//export ndTest
func ndTest() {
	testing.Init()
	err := flag.CommandLine.Parse([]string{"-test.v"})
	if err == nil {
		err = lib.open()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	testing.Main(regexp.MatchString, lib.tests(), nil, nil)
}

// ndWithin is called with the GIL. It calls f and raises what that raised, or raises the error that is
// named f.
//
//export ndWithin
func ndWithin(f uintptr) C.int {
	err := lib.interp.Within(func(g *py.GIL) error {
		err := within(g, py.Object(f))
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

func within(g *py.GIL, f py.Object) error {
	if !g.IsStr(f) {
		_, err := g.Call(f, nil, nil)
		return err
	}
	name, err := g.Text(f)
	if err != nil {
		return err
	}
	return map[string]error{
		"config":   &core.Error{Op: "test", Kind: core.ErrConfig},
		"layout":   &core.Error{Op: "test", Kind: core.ErrLayout},
		"dtype":    &core.Error{Op: "test", Kind: core.ErrDType},
		"closed":   &core.Error{Op: "test", Kind: core.ErrClosed},
		"no class": &core.PythonError{Type: "len", Message: "no exception"},
	}[name]
}

func main() {}
