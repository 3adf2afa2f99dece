package heap

import (
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestStress runs each test of the stress program; what they hold stands in testdata/stress.
func TestStress(t *testing.T) {
	t.Parallel()
	program := stress(t)
	for _, name := range []string{
		"entries", "lookups", "alignment", "overflow", "realloc", "errno", // the malloc family
		"calloc", "sparse", "pins", "wild", "trim", "keep", "steady", "growth", "seals", // a block's life
		"threads", "contention",
		"fork", "fork-threads", "fork-pinned", "fork-granted", "fork-guarded", "fork-child", "fork-often", "fork-generations", "fork-closed", "fork-warm", "fork-dumped", "fork-signals",
		"fork-bare", "exec",
		"promote", "promote-sparse", "promote-writers", "promote-input", "promote-refused", "promote-often", "promote-child", "promote-repin", "promote-beside",
		"promote-elsewhere", "promote-together", "promote-pinned", "promote-signals", "promote-limit", "promote-own-limit", "promote-mappings", "promote-lowest",
		"select", "closing", "replaced", "few-descriptors", "large-pools", "large-pools-promoted", // descriptors
		"mapped-over", "advice", "advice-changed", "guarded", "protected",
		"overcommit", "file-size", "address-space", "data-limit", "own-address-space", "own-data-limit", "child-limit",
		"denied memfd_create", "denied removal", "denied userfaultfd", "denied userfaultfd-unknown", "denied userfaultfd-features",
		"denied userfaultfd-files", "denied userfaultfd-writes",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := command(t, program, library(t), []string{every, promotes}, strings.Fields(name))
			if out := run(t, c); out != "" {
				t.Log(out)
			}
		})
	}
}

// outside has the libc serve all requests, so that what is promoted is its memory.
const outside = "NDBRIDGE_HEAP_LIBRARIES==none"

var outsideTests = []string{
	"outside", "outside-resize", "outside-refused", "outside-mappings", "outside-child", "outside-many", "outside-hammer",
	"outside-looks", "outside-beside", "outside-changes", "outside-gone", "outside-gone-early", "outside-left", "outside-larger", "outside-smaller", "outside-going", "fork-dumped", "fork-bare", "promote-lowest",
	"promote-sparse", "promote-writers", "promote-input", "promote-beside", "promote-elsewhere", "promote-together", "promote-signals",
	"promote-limit", "promote-own-limit", "promote-mappings",
}

// TestStressOutside runs the tests of memory outside the heap that becomes shared in place, and those of promotion on such
// memory.
func TestStressOutside(t *testing.T) {
	t.Parallel()
	program := stress(t)
	for _, name := range outsideTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Else glibc would map less and less by itself.
			env := []string{outside, promotes, "MALLOC_MMAP_THRESHOLD_=131072"}
			if out := run(t, command(t, program, library(t), env, []string{name})); out != "" {
				t.Log(out)
			}
		})
	}
}

// TestStressLate runs what TestStressOutside runs in a program that began without the library, and loads it late, and tests of that.
func TestStressLate(t *testing.T) {
	t.Parallel()
	program := stress(t)
	frees, err := compile("frees.so", "-shared", "-fPIC", "testdata/frees.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(outsideTests, []string{"late-links", "late-small", "late-undone", "late-library", "late-loading", "late-advice", "late-handlers", "late-awaiting", "denied population", "denied reading"}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := []string{"STRESS_LATE=" + library(t), "STRESS_LIBRARY=" + frees, promotes, "MALLOC_MMAP_THRESHOLD_=131072"}
			if out := run(t, command(t, program, "", env, strings.Fields(name))); out != "" {
				t.Log(out)
			}
		})
	}
}

// TestWrongFree holds that a program's wrong free ends in an abort that says who complains and why.
func TestWrongFree(t *testing.T) {
	t.Parallel()
	program := stress(t)
	for how, want := range map[string]string{
		"double":     "free(): block is free already: 0x",
		"inside":     "free(): not the start of a shared block: 0x",
		"stray":      "free(): not the start of a shared block: 0x",
		"given-back": "free(): not the start of a shared block: 0x",
		"usable":     "use of a block that was freed: 0x",
		"realloc":    "use of a block that was freed: 0x",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			state, said := fail(t, command(t, program, library(t), []string{every}, []string{"wrong-free", how}))
			status, ok := state.Sys().(syscall.WaitStatus)
			if !ok || status.Signal() != syscall.SIGABRT {
				t.Errorf("it ended with %v, want an abort", state)
			}
			if !strings.HasPrefix(said, "libndbridge-heap.so: "+want) {
				t.Errorf("it said %q, want %q", said, want)
			}
		})
	}
}

// TestForkTestsNotice builds the library so that shared pages stay shared over a fork: the tests of
// forks must fail then.
func TestForkTestsNotice(t *testing.T) {
	t.Parallel()
	program := stress(t)
	lib := libraryWith(t, "-DHEAP_TEST_SHARE_ACROSS_FORK")
	for name, memory := range map[string]string{
		"fork": every, "fork-pinned": every, "fork-granted": every, "fork-child": every, "outside": outside, "outside-child": outside,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, said := fail(t, command(t, program, lib, []string{memory}, []string{name})); !strings.Contains(said, ".c:") {
				t.Errorf("it failed by something else than a check: %s", said)
			}
		})
	}
}

// TestPromoteWithoutRights runs the tests of promotion as a program without CAP_SYS_PTRACE would: the kernel lets no
// system call wait for a piece that is being promoted.
func TestPromoteWithoutRights(t *testing.T) {
	t.Parallel()
	program := stress(t)
	lib := libraryWith(t, "-DHEAP_TEST_USER_FAULTS")
	for name, memory := range map[string]string{
		"promote": every, "promote-writers": every, "promote-input": every, "promote-beside": every, "promote-signals": every,
		"outside": outside, "promote-writers outside": outside, "promote-input outside": outside,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, command(t, program, lib, []string{memory, promotes}, strings.Fields(name)[:1]))
		})
	}
}

// TestPromoteRefuses holds that nothing is promoted if the user forbids it, nor, unless the user asks for it, where a
// system call of the program might fail.
func TestPromoteRefuses(t *testing.T) {
	t.Parallel()
	program := stress(t)
	unprivileged := libraryWith(t, "-DHEAP_TEST_USER_FAULTS")
	for name, c := range map[string]struct {
		lib string
		env []string
	}{
		"never":                  {library(t), []string{"NDBRIDGE_HEAP_PROMOTE=never"}},
		"by default":             {unprivileged, nil},
		"safe":                   {unprivileged, []string{"NDBRIDGE_HEAP_PROMOTE=safe"}},
		"a word that means none": {unprivileged, []string{"NDBRIDGE_HEAP_PROMOTE=yes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, command(t, program, c.lib, append(c.env, every), []string{"promote-not"}))
		})
	}
}

// TestPromotionTestsNotice builds the library so that promotion does without one of its means: the tests must fail
// then.
func TestPromotionTestsNotice(t *testing.T) {
	t.Parallel()
	program := stress(t)
	for name, flags := range map[string][]string{
		"promote-writers": {"-DHEAP_TEST_PROMOTE_UNPROTECTED"},
		"promote-input":   {"-DHEAP_TEST_USER_FAULTS", "-DHEAP_TEST_GATE_OPEN"},
	} {
		for of, memory := range map[string]string{"the heap's": every, "outside": outside} {
			t.Run(name+" "+of, func(t *testing.T) {
				t.Parallel()
				lib := libraryWith(t, flags...)
				if _, said := fail(t, command(t, program, lib, []string{memory, promotes}, []string{name})); !strings.Contains(said, ".c:") {
					t.Errorf("it failed by something else than a check: %s", said)
				}
			})
		}
	}
}
