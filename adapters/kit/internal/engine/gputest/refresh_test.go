//go:build cuda

package gputest

import (
	"errors"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// counted is an array of no framework that counts what it is asked for, but for what it has, and things that a host's
// look can do to it.
const counted = `
class Counted(Array):
    asked = 0
    def __getattr__(self, name):
        Counted.asked += 1
        raise AttributeError(name)

def filled(value):
    p = alloc(MB)
    fill(p, value, MB // 4, 0, slow=0)
    call("cuCtxSynchronize")
    return p

p, q = filled(1), filled(2)
array = Counted(p, MB // 4)
fenced = Counted(filled(5), MB // 4)
import ndbridge
ndbridge.publish("published", fenced)

class Now:
    @property
    def asked(self):
        return memoryview(Counted.asked.to_bytes(2, "little"))

    @property
    def moved(self):
        """In the same dict."""
        array.__cuda_array_interface__["data"] = (q, False)
        return memoryview(b"x")

    @property
    def shorter(self):
        array.__cuda_array_interface__ = dict(array.__cuda_array_interface__, shape=(3,))
        return memoryview(b"x")

    @property
    def written(self):
        enter()
        fill(q, 3, MB // 4, new_stream())
        return memoryview(b"x")

    @property
    def written_later(self):
        enter()
        fill(fenced.__cuda_array_interface__["data"][0], 6, MB // 4, new_stream(), slow=2_000_000_000)
        return memoryview(b"x")

    @property
    def freed_published(self):
        enter()
        free(fenced.__cuda_array_interface__["data"][0])
        return memoryview(b"x")

    @property
    def freed(self):
        """By hand, as the next allocation shows, which has the same address."""
        global r
        enter()
        free(q)
        r = filled(4)
        return memoryview(bytes([r == q]))

    @property
    def plain(self):
        """With something in the dict that is not plain."""
        array.__cuda_array_interface__.update(data=(p, False), descr=[("", "<f4")])
        return memoryview(b"x")
now = Now()
`

// TestRefreshOfNoFramework looks again at an array that only the CUDA Array Interface tells of: it is known by what is
// in the dictionary, and each look waits for the work that there is then.
func TestRefreshOfNoFramework(t *testing.T) {
	t.Parallel()
	s := start(t, counted, options{})
	source, err := s.Source("array")
	if err != nil {
		t.Fatal(err)
	}
	var v *core.View
	look := func(what string, changed bool) {
		t.Helper()
		next, did, err := source.Refresh(t.Context(), v)
		if err != nil || did != changed {
			t.Fatalf("%s: changed: %v, %v", what, did, err)
		}
		v = next
	}
	look("at first", true)
	defer func() { _ = v.Close() }()
	all(t, v, 1)
	before := asked(t, s)
	const looks = 20
	for range looks {
		look("again", false)
		if _, waits := coretest.Fence(t, v).(contract.CUDAWord); !waits {
			t.Fatalf("the fence is %T", coretest.Fence(t, v))
		}
	}
	// A busy machine may make the mailbox give up, so not every look must have been one at the dictionary only.
	if n := asked(t, s) - before; before == 0 || n > looks/2 {
		t.Errorf("the array was asked for %d other things at first and for %d in %d looks", before, n, looks)
	}
	take(t, s, "now.moved")
	look("elsewhere", true)
	all(t, v, 2)
	take(t, s, "now.written")
	look("written to", false)
	all(t, v, 3)
	take(t, s, "now.shorter")
	look("shorter", true)
	if all(t, v, 3); v.Len() != 3 {
		t.Errorf("%d elements", v.Len())
	}
	if again := bytesOf(t, take(t, s, "now.freed")); again[0] == 1 {
		look("in memory that was freed by hand", true)
		all(t, v, 4)
	}
	take(t, s, "now.plain")
	look("without a fingerprint", true)
	all(t, v, 1)
	look("without a fingerprint, again", false)
}

func asked(t *testing.T, s *hostplugin.Session) int {
	t.Helper()
	v := take(t, s, "now.asked")
	defer v.Close()
	b := bytesOf(t, v)
	return int(b[0]) + int(b[1])<<8
}

// TestRefreshOfPublished looks again at what was published: it is known by its fingerprint, and waits for nothing that came
// later. What was freed by hand is noticed.
func TestRefreshOfPublished(t *testing.T) {
	t.Parallel()
	s := start(t, counted, options{})
	source, err := s.Source("published")
	if err != nil {
		t.Fatal(err)
	}
	v, err := source.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = v.Close() }()
	before := asked(t, s)
	take(t, s, "now.written_later")
	const looks = 20
	for range looks {
		next, changed, err := source.Refresh(t.Context(), v)
		if err != nil || changed || next != v {
			t.Fatalf("changed: %v, %v", changed, err)
		}
	}
	began := time.Now()
	if err := v.Wait(t.Context()); err != nil || time.Since(began) > time.Second {
		t.Errorf("what was published waited %v for work that came later (%v)", time.Since(began), err)
	}
	if n := asked(t, s) - before; before == 0 || n > looks/2 {
		t.Errorf("the array was asked for %d things at first and for %d in %d looks", before, n, looks)
	}
	take(t, s, "now.freed_published")
	if _, _, err := source.Refresh(t.Context(), v); !errors.Is(err, core.ErrPointer) {
		t.Errorf("after its memory was freed by hand: %v, expected ErrPointer", err)
	}
}
