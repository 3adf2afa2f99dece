//go:build cuda

package gputest

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// streams makes arrays by slow work, each on a stream of its own unless told otherwise.
const streams = `
def slow(value, on, time=SLOW, **entries):
    p = alloc(MB)
    fill(p, 0, MB // 4, on, slow=0)
    call("cuStreamSynchronize", p64(on))
    fill(p, value, MB // 4, on, slow=time)
    return Array(p, MB // 4, **entries)

mine, other = new_stream(), new_stream()
`

// TestOrder proves that work is waited for on streams that are named and that nobody names.
func TestOrder(t *testing.T) {
	t.Parallel()
	const script = streams + `
named = slow(3, mine, stream=mine)
legacy = slow(4, 0, stream=1)
silent = slow(1, new_stream())
none = slow(2, new_stream())
none.__cuda_array_interface__["stream"] = None
threads = slow(5, new_stream(), stream=2)
`
	for _, policy := range []contract.SyncPolicy{"", contract.SyncDevice, contract.SyncStream} {
		t.Run(cmp.Or(string(policy), "default"), func(t *testing.T) {
			t.Parallel()
			s := start(t, script, options{sync: policy})
			for i, name := range []string{"silent", "none", "named", "legacy", "threads"} {
				all(t, take(t, s, name), float32(i+1))
			}
		})
	}
}

// TestOrderOfOneStream proves that by the policy "stream" no more is waited for than what the named
// stream was given, and that without order the data would be wrong.
func TestOrderOfOneStream(t *testing.T) {
	t.Parallel()
	s := start(t, streams+`
wrong = slow(6, mine, time=30_000_000_000, stream=other)
right = slow(7, other, stream=other)
`, options{sync: contract.SyncStream})
	if data := floats(t, take(t, s, "wrong")); data[0] != 0 {
		t.Errorf("work on a stream that the array does not name was waited for: %v", data[0])
	}
	all(t, take(t, s, "right"), 7)
}

// TestFenceIsNotWaitedFor proves that taking a view does not wait for slow work, and that the word says
// when it is done.
func TestFenceIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := start(t, streams+`
array = slow(1, mine)
`, options{})
	v := take(t, s, "array")
	if _, ok := coretest.Fence(t, v).(contract.CUDAWord); !ok {
		t.Errorf("the fence is %T", coretest.Fence(t, v))
	}
	all(t, v, 1)
}

// TestOrderWithout proves the ways of devices and drivers that lack what ordering needs.
func TestOrderWithout(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"norecord", "nowords", "noregister", "norecord,nowords"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := start(t, streams+`
array = slow(1, mine)
`, options{faults: fault})
			v := take(t, s, "array")
			if _, ok := coretest.Fence(t, v).(contract.Ready); fault != "norecord" && !ok {
				t.Errorf("the fence is %T", coretest.Fence(t, v))
			}
			all(t, v, 1)
		})
	}
}

// TestWaitObeysContext gives up while a device without words is at work.
func TestWaitObeysContext(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"nowords", "norecord"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := start(t, streams+`
SLOW = 2_000_000_000
p = alloc(MB)
fill(p, 1, MB // 4, mine, slow=SLOW)
array = Array(p, MB // 4)
`, options{faults: fault})
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if v, err := s.View(ctx, "array"); err == nil {
				_ = v.Close()
				t.Error("a view was had before its work was done")
			} else if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			all(t, take(t, s, "array"), 1)
		})
	}
}

// TestPublish proves that a publication waits for what came before it on its own thread's context, and
// not for what came later.
func TestPublish(t *testing.T) {
	t.Parallel()
	s := start(t, streams+`
import ndbridge
before = slow(1, mine)
ndbridge.publish("early", before)
later = alloc(MB)
fill(later, 7, MB // 4, other, slow=3_000_000_000)
variable = before
ndbridge.publish("gone", Array(alloc(MB), 4))
ndbridge.unpublish("gone")
`, options{})
	began := time.Now()
	v := take(t, s, "early")
	all(t, v, 1)
	if late := time.Since(began); late > 2*time.Second {
		t.Errorf("what was published waited %v, for work that came later", late)
	}
	all(t, take(t, s, "variable"), 1)
}

// TestCapture looks while a stream is captured, in the mode in which the calls of all threads can break the capture:
// what was published is served, other arrays wait for the capture's end, under their context. No look breaks it.
func TestCapture(t *testing.T) {
	t.Parallel()
	s := launch(t, streams+captures+`
p = alloc(MB)
fill(p, 2, MB // 4, other, slow=0)
array = Array(p, MB // 4)
unshared = from_pool(pool(False), MB, other)
fill(unshared, 3, MB // 4, other, slow=0)
array_to_copy = Array(unshared, MB // 4)
ndbridge.publish("published", array)
ndbridge.publish("published_to_copy", array_to_copy)
begin()
begun = memoryview(b"x")
until_wanted("end")
result = end()
done = memoryview(bytes([result]))
`, options{})
	take(t, s, "begun")
	all(t, take(t, s, "published"), 2)
	all(t, take(t, s, "published_to_copy"), 3)
	for _, name := range []string{"array", "array_to_copy"} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		v, err := s.View(ctx, name)
		cancel()
		if err == nil {
			_ = v.Close()
		}
		refused(t, name, err, context.DeadlineExceeded, `sync = "stream"`)
	}
	waited := make(chan error, 1)
	go func() {
		v, err := s.View(t.Context(), "array")
		if err == nil {
			err = v.Close()
		}
		waited <- err
	}()
	take(t, s, "want.end")
	if result := bytesOf(t, take(t, s, "done")); result[0] != 0 {
		t.Errorf("the capture ended with %d: it was broken", result[0])
	}
	if err := <-waited; err != nil {
		t.Errorf("a look that waited for the end of the capture: %v", err)
	}
}

// captures lets a script capture a graph, and wait until a host says so by looking.
const captures = `
import threading, time, ndbridge
def function(name, *types):
    """As the CUDA runtime finds the driver's functions."""
    address = p64()
    call("cuGetProcAddress_v2", name, ctypes.byref(address), 12000, p64(0), None)
    return ctypes.CFUNCTYPE(ctypes.c_int, *types)(address.value)

def begin(mode=0):
    call("cuStreamBeginCapture_v2", p64(mine), mode)

def end():
    return cu.cuStreamEndCapture(p64(mine), ctypes.byref(p64()))

class Want:
    wanted = set()
    def __getattr__(self, name):
        self.wanted.add(name)
        return memoryview(b"wanted")
want = Want()

def until_wanted(name):
    while name not in want.wanted:
        time.sleep(0.001)
`

// TestCapturesBesideLooks captures a thousand graphs beside a host that looks all the time.
func TestCapturesBesideLooks(t *testing.T) {
	t.Parallel()
	s := launch(t, streams+captures+`
p = alloc(MB)
fill(p, 2, MB // 4, other, slow=0)
array = Array(p, MB // 4)
until_wanted("begin")
broken, graph = 0, p64()
runtime_begin = function(b"cuStreamBeginCapture", p64, ctypes.c_int)
runtime_end = function(b"cuStreamEndCapture", p64, ctypes.c_void_p)
for i in range(1000):
    if i % 2:
        begin(i % 3)
    else:
        assert runtime_begin(mine, i % 3) == 0
    call("cuMemsetD32Async", p64(p), word(0), size_t(MB // 4), p64(mine))
    broken += (end() if i % 2 else runtime_end(mine, ctypes.byref(graph))) != 0
done = memoryview(broken.to_bytes(2, "little"))
`, options{})
	take(t, s, "want.begin")
	done := make(chan *core.View, 1)
	go func() {
		v, err := s.View(t.Context(), "done")
		if err != nil {
			t.Error(err)
		}
		done <- v
	}()
	for looks := 0; ; looks++ {
		select {
		case v := <-done:
			if v == nil {
				return
			}
			defer v.Close()
			if n := bytesOf(t, v); n[0] != 0 || n[1] != 0 || looks == 0 {
				t.Errorf("%d of 1000 captures were broken, beside %d looks", int(n[0])+int(n[1])<<8, looks)
			}
			return
		default:
		}
		v, err := s.View(t.Context(), "array")
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// bytesOf reads a view of bytes.
func bytesOf(t *testing.T, v *core.View) []byte {
	t.Helper()
	b, err := v.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestManyLooksBehindSlowWork looks more often, while a stream of the program waits for the host, than the driver takes
// events of a whole context. The looks that find too many wait, and nothing else does.
func TestManyLooksBehindSlowWork(t *testing.T) {
	t.Parallel()
	s := launch(t, streams+captures+`
gate = (ctypes.c_uint * 1).from_address(pinned(4))
call("cuStreamWaitValue32_v2", p64(mine), p64(ctypes.addressof(gate)), word(1), 0)
p = alloc(MB)
fill(p, 2, MB // 4, mine, slow=0)
array = Array(p, MB // 4)
until_wanted("beat")
for _ in range(100):
    call("cuMemsetD32Async", p64(p + MB // 2), word(0), size_t(1), p64(other))
import time; time.sleep(0.3) # so that who asks for went_on has to wait for it
went_on = memoryview(b"x")
until_wanted("go")
gate[0] = 1
`, options{})
	const looks = 100
	views := make(chan *core.View, looks)
	for range looks {
		go func() {
			v, err := s.View(t.Context(), "array")
			if err != nil {
				t.Error(err)
			}
			views <- v
		}()
	}
	taken := []*core.View{<-views}
	take(t, s, "want.beat")
	take(t, s, "went_on") // the program's own calls of the driver return
	take(t, s, "want.go")
	for len(taken) < looks {
		taken = append(taken, <-views)
	}
	for _, v := range taken {
		if err := errors.Join(v.Wait(t.Context()), v.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestLostContext frees who waits for a word when the program's context breaks.
func TestLostContext(t *testing.T) {
	t.Parallel()
	s := start(t, streams+`
import threading
p = alloc(MB)
fill(p, 1, MB // 4, mine, slow=60_000_000_000)
array = Array(p, MB // 4)
class Break:
    @property
    def now(self):
        faults("lost")
        return memoryview(b"broken")
breaker = Break()
`, options{})
	v := take(t, s, "array")
	take(t, s, "breaker.now")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := core.Copy(ctx, make([]float32, v.Len()), v); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("after the program's context broke: %v", err)
	}
}
