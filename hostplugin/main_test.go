package hostplugin_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// forgotten is the array of which a test forgets a view on purpose.
const forgotten = "waves"

func TestMain(m *testing.M) {
	if mode := os.Getenv(fakeVariable); mode != "" {
		os.Exit(fakeMain(mode))
	}
	flag.Parse()
	// These tests wait for other processes most of the time.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	leaks := func() []core.Leak { return nil }
	if flag.Lookup("test.bench").Value.String() == "" { // a report needs a stack trace of each view
		leaks = coretest.Leaks()
	}
	status := m.Run()
	for _, leak := range leaks() {
		if leak.Name != forgotten {
			fmt.Fprintln(os.Stderr, leak)
			status = max(status, 1)
		}
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = max(status, 1)
	}
	os.Exit(status)
}

// eventually waits until ok, for what no event tells.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}
