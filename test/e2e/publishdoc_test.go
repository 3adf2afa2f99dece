package e2e

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// documented starts a program of the documentation in testdata/docs.
func documented(t *testing.T, python, script string) *hostplugin.Session {
	t.Helper()
	log := harness.NewLog()
	host, err := hostplugin.New(hostplugin.Config{Programs: []hostplugin.Program{
		{Name: "program", Python: python, Script: "testdata/docs/" + script, SharedHeap: hostplugin.HeapOptions{Promote: "always"}},
	}, Logger: log.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = host.Close()
		if t.Failed() {
			t.Logf("the program's log:\n%s", log.Text())
		}
	})
	session, err := host.Start(t.Context(), "program")
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// followGroup is the first example of docs/publish.md.
func followGroup(ctx context.Context, camera *hostplugin.Session, use func(step int64, pixels []uint8)) error {
	set, err := camera.Group("frame", "step")
	if err != nil {
		return err
	}
	defer set.Close()
	for step := int64(0); step < 500; {
		if err := set.Next(ctx); err != nil {
			return err
		}
		if step, err = core.At[int64](set.View("step")); err != nil {
			return err
		}
		pixels, err := core.Slice[uint8](set.View("frame"))
		if err != nil {
			return err
		}
		use(step, pixels)
	}
	return nil
}

// TestPublishFreshArrays runs the first example of docs/publish.md: each version comes as a whole.
func TestPublishFreshArrays(t *testing.T) {
	t.Parallel()
	camera := documented(t, harness.Python(t), "fresh.py")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := followGroup(ctx, camera, func(step int64, pixels []uint8) {
		if low, high := slices.Min(pixels), slices.Max(pixels); low != uint8(step) || high != low {
			t.Errorf("step %d shows pixels from %d to %d", step, low, high)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// followBuffers is the second example of docs/publish.md. Use gets the versions that were read as a whole.
func followBuffers(ctx context.Context, frames *hostplugin.Source, use func(version uint64, pixels []uint8)) error {
	const buffers = 8 // that the program fills in turn
	frame, err := frames.Next(ctx, nil)
	if err != nil {
		return err
	}
	pixels := make([]uint8, frame.Len())
	for {
		version := frame.Version()
		if _, err := core.Copy(ctx, pixels, frame); err != nil {
			return err
		}
		newest, changed, err := frames.Latest(ctx, frame)
		if err != nil {
			return err
		}
		if newest.Version()-version < buffers-1 { // the program has not begun to write there again
			use(version, pixels)
		}
		if frame = newest; !changed {
			frame, err = frames.Next(ctx, frame)
		}
		if errors.Is(err, core.ErrNotFound) { // the script has ended, and this was its last version
			return frame.Close()
		}
		if err != nil {
			return err
		}
	}
}

// TestPublishBuffersInTurn runs the second example of docs/publish.md: what is used is whole, though the program writes
// into the buffers again.
func TestPublishBuffersInTurn(t *testing.T) {
	t.Parallel()
	camera := documented(t, harness.Python(t), "turns.py")
	frames, err := camera.Source("frame")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	used, last := 0, uint64(0)
	if err := followBuffers(ctx, frames, func(version uint64, pixels []uint8) {
		used, last = used+1, version
		if low, high := slices.Min(pixels), slices.Max(pixels); low != uint8(version) || high != low {
			t.Errorf("version %d shows pixels from %d to %d", version, low, high)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if last != 500 {
		t.Errorf("the last version that was read as a whole is %d", last)
	}
	t.Logf("%d of 500 versions were read as a whole", used)
}

// TestPublishWrittenInPlace holds what docs/publish.md says of arrays that are written after they were published: a
// shared array shows it, a small one when the host looks, and a number never.
func TestPublishWrittenInPlace(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+`
counter, step, frame = np.zeros(1), 0, np.zeros(1 << 16)
ndbridge.publish({"counter": counter, "step": step, "frame": frame})
counter[0], step, frame[0] = 5, 5, 5
remote.serve()
`, harness.Options{})
	harness.Eval[int](t, run.Remote, "1") // answers when the program is there
	ctx := t.Context()
	frame, step, counter := source(t, run, "frame"), source(t, run, "step"), source(t, run, "counter")
	f, s, c := viewOf(t, frame), viewOf(t, step), viewOf(t, counter)
	if first(t, f) != 5 || !f.Live() || f.Copied() {
		t.Errorf("frame shows %v, live: %v, copied: %v", first(t, f), f.Live(), f.Copied())
	}
	if x := slice[int64](t, s)[0]; x != 0 {
		t.Errorf("step shows %v, want what was published", x)
	}
	if first(t, c) != 5 || c.Reason() != contract.ReasonBelowThreshold || c.Live() || c.Version() != 1 {
		t.Errorf("counter shows %v, for reason %v, live: %v", first(t, c), c.Reason(), c.Live())
	}
	run.Remote.Exec(t, "counter[0] = 6")
	if _, changed, err := counter.Latest(ctx, c); err != nil || changed || first(t, c) != 5 {
		t.Errorf("Latest: changed %v, %v; it shows %v", changed, err, first(t, c))
	}
	if _, changed, err := counter.Refresh(ctx, c); err != nil || changed || first(t, c) != 6 {
		t.Errorf("Refresh: changed %v, %v; it shows %v", changed, err, first(t, c))
	}
	// The same array again is another version, and another view.
	run.Remote.Exec(t, `ndbridge.publish("frame", frame)`)
	next, changed, err := frame.Latest(ctx, f)
	if err != nil || !changed || next == f || next.Version() != 2 {
		t.Fatalf("Latest: changed %v, %v; version %d", changed, err, next.Version())
	}
	closed(t, next, s, c)
}
