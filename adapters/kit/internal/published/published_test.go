package published

import (
	"math/rand/v2"
	"testing"
)

// put makes the next version of names, and gives its publications.
func put(n *Names, names ...string) map[string]*Publication {
	next := make(map[string]*Publication)
	for _, name := range names {
		next[name] = &Publication{}
	}
	n.Put(next)
	return next
}

// TestVersions: they count from 1, for each name.
func TestVersions(t *testing.T) {
	t.Parallel()
	var n Names
	for i := range uint64(3) {
		for name, p := range put(&n, "a", "b") {
			if p.Version != i+1 {
				t.Errorf("%s is of version %d, want %d", name, p.Version, i+1)
			}
		}
	}
	if v := put(&n, "c")["c"].Version; v != 1 {
		t.Errorf("a name that comes later begins with version %d", v)
	}
}

// TestVersionsGrow: no name ever has a version again, though it be given back any number of times, alone or with others.
func TestVersionsGrow(t *testing.T) {
	t.Parallel()
	var n Names
	random := rand.New(rand.NewPCG(1, 2))
	last, names := make(map[string]uint64), []string{"a", "b", "c", "d"}
	for range 10_000 {
		some := names[:1+random.IntN(len(names))]
		if random.IntN(3) == 0 {
			none := make(map[string]*Publication)
			for _, name := range some {
				none[name] = nil
			}
			n.Put(none)
		} else {
			for name, p := range put(&n, some...) {
				if p.Version <= last[name] {
					t.Fatalf("%s is of version %d after version %d", name, p.Version, last[name])
				}
				last[name] = p.Version
			}
		}
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	}
	if len(n.entries) > len(names) {
		t.Errorf("%d entries of %d names", len(n.entries), len(names))
	}
}

// TestDescribedAnew: a version that is described anew, since there is a host to offer it to, is the same version, and the next one is not.
func TestDescribedAnew(t *testing.T) {
	t.Parallel()
	var n Names
	first := put(&n, "a")["a"]
	again := &Publication{}
	if over := n.Show("a", first, again); over != first || n.Last("a") != again {
		t.Fatalf("%+v is over", over)
	}
	if !first.Is(again) || !again.Is(first) || first.Is(nil) || (*Publication)(nil).Is(first) || !(*Publication)(nil).Is(nil) {
		t.Error("a version is another one when it is described anew, or none is one")
	}
	if put(&n, "a")["a"].Is(again) {
		t.Error("the next version is the same")
	}
}
