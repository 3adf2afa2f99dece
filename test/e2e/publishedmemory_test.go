package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestPublishManyNames: what there is no room to tell the host of is not published, and the program hears of it.
func TestPublishManyNames(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+`
ndbridge.publish({"n%d" % i: i for i in range(16000)})
def more():
    try:
        ndbridge.publish({"m%d" % i: i for i in range(385)})
    except Exception as e:
        return str(e)
remote.serve()
`, harness.Options{})
	if said := harness.Eval[string](t, run.Remote, "more()"); !strings.Contains(said, "no room for more") || !strings.Contains(said, "unpublish") {
		t.Errorf("one name too many: %q", said)
	}
	run.Remote.Exec(t, `ndbridge.unpublish("n0")`)
	if said := harness.Eval[any](t, run.Remote, "more()"); said != nil {
		t.Errorf("when there is room: %q", said)
	}
	for name, want := range map[string]int64{"n15999": 15999, "m384": 384} {
		version := uint64(1)
		if name == "m384" { // what comes after a name was taken back has a version above all that it had
			version = 2
		}
		view, _, err := source(t, run, name).Latest(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if x := slice[int64](t, view); x[0] != want || view.Version() != version {
			t.Errorf("%s: version %d shows %v", name, view.Version(), x)
		}
		closed(t, view)
	}
}

// TestPublishedSmall: a small array has its own memory, which nothing keeps: NumPy frees it and takes the same address
// for what the object holds next. That is another version, never the published shape over other numbers.
func TestPublishedSmall(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+`
a = np.arange(16, dtype="f8")
ndbridge.publish("a", a)
address = a.ctypes.data
def refill():
    for i in range(1000):
        a.__setstate__((1, (2, 16), np.dtype("f4"), False, np.full(32, 7, "f4").tobytes()))
        if a.ctypes.data == address:
            return True
remote.serve()
`, harness.Options{})
	ready(t, run)
	src := source(t, run, "a")
	view := viewOf(t, src)
	if data := slice[float64](t, view); data[15] != 15 || view.Version() != 1 {
		t.Errorf("version %d shows %v", view.Version(), data)
	}
	if !harness.Eval[bool](t, run.Remote, "refill()") {
		t.Fatal("no memory came again at the same address")
	}
	view, changed, err := src.Refresh(t.Context(), view)
	if err != nil {
		t.Fatal(err)
	}
	if shape := view.Shape(); !changed || view.Version() != 2 || !slices.Equal(shape, []int{2, 16}) {
		t.Fatalf("other memory at the same address: changed %v, version %d, shape %v", changed, view.Version(), shape)
	}
	if data := slice[float32](t, view); slices.Min(data) != 7 || slices.Max(data) != 7 {
		t.Errorf("the view shows %v, want 7", data)
	}
	closed(t, view)
}

// TestPublishedOverMappedFiles: the program may unmap a file under an array, and NumPy lets it. What is there then is
// another file's, or nothing: the host sees the new one, or an error, and its old view says that it is not live.
func TestPublishedOverMappedFiles(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+`
from multiprocessing.shared_memory import SharedMemory
size = 1 << 17
files = [SharedMemory(create=True, size=size) for i in range(2)]
def over(file):
    return np.ndarray(size, "u1", buffer=file.buf)
a = over(files[0])
a[:] = 1
address = a.ctypes.data
ndbridge.publish("a", a)
def replace():
    names = files[1].name
    files[1].close()
    files[0].close()
    files[1] = SharedMemory(names)
    b = over(files[1])
    b[:] = 2
    return b.ctypes.data == address
def end():
    for file in files:
        file.unlink()
remote.serve()
`, harness.Options{})
	ready(t, run)
	src := source(t, run, "a")
	view := viewOf(t, src)
	if x := slice[uint8](t, view)[9]; x != 1 || view.Copied() || view.Version() != 1 {
		t.Errorf("version %d shows %d, copied: %v", view.Version(), x, view.Copied())
	}
	if !harness.Eval[bool](t, run.Remote, "replace()") {
		t.Fatal("the other file is not mapped at the same address")
	}
	if view.Live() {
		t.Error("a view of a file that another one has taken the place of is live")
	}
	run.Remote.Exec(t, "ndbridge.publish('a', a)")
	view, changed, err := src.Latest(t.Context(), view)
	if err != nil {
		t.Fatal(err)
	}
	if x := slice[uint8](t, view)[9]; !changed || x != 2 || view.Version() != 2 {
		t.Errorf("after publishing again: changed %v, version %d shows %d, want 2", changed, view.Version(), x)
	}
	closed(t, view)
	run.Remote.Exec(t, "end()")
}
