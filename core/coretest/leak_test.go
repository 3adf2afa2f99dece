package coretest_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// Tests of leaks do not run beside others: they forget views on purpose, and the observer of one sees
// those of all. For the same reason the tests of this package do not end with Main; that Main works is
// shown by TestMainFails.

// layout makes a Layout that the test takes for granted.
func layout(tb testing.TB, s core.LayoutSpec) core.Layout {
	tb.Helper()
	l, err := core.NewLayout(s)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// forget makes views and closes all but the one that which gives.
//
//go:noinline
func forget(t *testing.T, which func(v, part *core.View) *core.View) *coretest.Memory {
	t.Helper()
	m := coretest.NewMemory(make([]int16, 500)) // which has other arrays, too
	v, err := core.NewView(layout(t, core.LayoutSpec{DType: core.Int16, Shape: []int{5, 10}}), m,
		&core.ViewOptions{Name: "forgotten"})
	if err != nil {
		t.Fatal(err)
	}
	part, err := v.Select(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []*core.View{v, part} {
		if w != which(v, part) {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	return m
}

func TestLeaks(t *testing.T) { //nolint:paralleltest // see above
	for name, tc := range map[string]struct {
		which func(v, part *core.View) *core.View
		maker string
		size  string
	}{
		"a view":    {func(v, _ *core.View) *core.View { return v }, "coretest_test.forget", "100"},
		"a part":    {func(_, part *core.View) *core.View { return part }, "core.(*View).Select", "20"},
		"not a one": {func(_, _ *core.View) *core.View { return nil }, "", ""},
	} {
		leaks := coretest.Leaks()
		m := forget(t, tc.which)
		found := leaks()
		if tc.maker == "" {
			if len(found) > 0 || m.Closed() != 1 {
				t.Errorf("%s: %v, closed %d times", name, found, m.Closed())
			}
			continue
		}
		if len(found) != 1 || found[0].Name != "forgotten" || strconv.FormatInt(found[0].Size, 10) != tc.size {
			t.Fatalf("%s: found %+v", name, found)
		}
		text := found[0].String()
		first, rest, _ := strings.Cut(text, "\n")
		if first != "view \"forgotten\" of "+tc.size+" bytes was never closed; it was made by" ||
			!strings.Contains(rest, "coretest_test.forget\n") || !strings.Contains(rest, "leak_test.go:") {
			t.Errorf("%s: %s", name, text)
		}
		if lines := strings.Split(rest, "\n"); !strings.HasSuffix(lines[0], tc.maker) {
			t.Errorf("%s: the innermost function is %s, want %s", name, lines[0], tc.maker)
		}
		if m.Closed() != 0 {
			t.Errorf("%s: the garbage collector closed the memory", name)
		}
	}
}

func TestObserveLeaksEnds(t *testing.T) { //nolint:paralleltest // see above
	calls := 0
	stop := core.ObserveLeaks(func(core.Leak) { calls++ })
	stop()
	stop()
	leaks := coretest.Leaks()
	forget(t, func(v, _ *core.View) *core.View { return v })
	if found := leaks(); len(found) != 1 || calls != 0 {
		t.Errorf("found %d leaks, the observer that had ended was called %d times", len(found), calls)
	}
}

func TestLeakOfEmptyView(t *testing.T) { //nolint:paralleltest // see above
	leaks := coretest.Leaks()
	func() {
		_, err := core.NewView(layout(t, core.LayoutSpec{DType: core.Int8, Shape: []int{0}}), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
	}()
	if found := leaks(); len(found) != 1 || found[0].Size != 0 {
		t.Errorf("found %+v", found)
	}
}

// TestConformLeavesNothing runs the suite as a user does, and finds no view that it has forgotten.
func TestConformLeavesNothing(t *testing.T) { //nolint:paralleltest // see above
	leaks := coretest.Leaks()
	coretest.Conform(t, func(t *testing.T) contract.Producer {
		t.Helper()
		return coretest.NewProducer(t, coretest.Arrays()...)
	})
	for _, l := range leaks() {
		t.Error(l)
	}
}

// leaky, in the environment, says what TestMainHelper is to do.
const leaky = "CORETEST_LEAKY"

// TestMainFails runs this program again, with Main, and a test that forgets a view, fails, or does
// neither.
func TestMainFails(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]struct {
		code int
		text string
	}{
		"nothing": {0, "PASS"},
		"forget":  {1, `leak: view "forgotten" of 100 bytes was never closed`},
		"fail":    {1, "FAIL"},
	} {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestMainHelper$")
		cmd.Env = append(os.Environ(), leaky+"="+what)
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want.code || !strings.Contains(string(out), want.text) {
			t.Errorf("%s: exit status %d, %v\n%s", what, code, err, out)
		}
	}
}

// TestMainHelper runs in the program that TestMainFails starts, and does nothing elsewhere.
func TestMainHelper(t *testing.T) { //nolint:paralleltest // it is alone
	switch os.Getenv(leaky) {
	case "forget":
		forget(t, func(v, _ *core.View) *core.View { return v })
	case "fail":
		t.Error("as it was told to")
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(leaky) != "" {
		coretest.Main(m)
	}
	m.Run()
}
