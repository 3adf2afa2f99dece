package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Holding is what this process holds of the kernel: it is the same before and after whatever cleans
// up behind itself.
type Holding struct {
	descriptors map[string]string // by number: what it is open to
	mappings    map[string]int    // shared mappings of files, by file
	children    []string
}

// Held counts what this process holds now.
func Held(tb testing.TB) Holding {
	tb.Helper()
	h := Holding{descriptors: map[string]string{}, mappings: map[string]int{}}
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		tb.Fatal(err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil { // the listing's own descriptor is closed by now
			h.descriptors[filepath.Base(link)] = to
		}
	}
	for _, m := range Mappings(tb, os.Getpid()) {
		if strings.HasSuffix(m.Perms, "s") {
			h.mappings[m.File+" "+m.Path]++
		}
	}
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		tb.Fatal(err)
	}
	for _, list := range lists {
		if text, err := os.ReadFile(list); err == nil { // a thread may have ended
			h.children = append(h.children, strings.Fields(string(text))...)
		}
	}
	return h
}

// Same holds that this process comes to hold nothing more than it did.
func (h Holding) Same(tb testing.TB) {
	tb.Helper()
	const bound = 5 * time.Second
	var more []string
	for deadline := time.Now().Add(bound); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // bounded polling
		runtime.Gosched()
		if more = h.more(Held(tb)); len(more) == 0 {
			return
		}
	}
	tb.Errorf("still held after %v:\n\t%s", bound, strings.Join(more, "\n\t"))
}

// more lists what now holds that h did not.
func (h Holding) more(now Holding) []string {
	var more []string
	for number, to := range now.descriptors {
		if before, ok := h.descriptors[number]; (!ok || before != to) && !ownDescriptor(to) {
			more = append(more, fmt.Sprintf("descriptor %s: %s", number, to))
		}
	}
	for file, n := range now.mappings {
		if n > h.mappings[file] {
			more = append(more, fmt.Sprintf("%d mappings of %s, %d before", n, file, h.mappings[file]))
		}
	}
	if len(now.children) > len(h.children) {
		more = append(more, fmt.Sprintf("children %v, before %v", now.children, h.children))
	}
	return more
}

// ownDescriptor knows what Go's runtime opens once and keeps.
func ownDescriptor(to string) bool {
	return to == "anon_inode:[eventpoll]" || to == "anon_inode:[eventfd]" || strings.HasPrefix(to, "/proc/") ||
		strings.HasPrefix(to, "/sys/fs/cgroup")
}
