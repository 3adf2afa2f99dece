package model

import (
	"context"
	"slices"
	"time"

	"github.com/ndbridge/ndbridge/core"
)

// hold keeps a view, in the place of another one.
func (r *rig) hold(slot int, name string, how asking, v *core.View) bool {
	r.let(slot)
	r.enter(slot, &kept{view: v, of: name, how: how})
	r.note("that is view %d", slot)
	return true
}

// enter has the program say from now on what a view must show that shares its memory.
func (r *rig) enter(slot int, k *kept) {
	if k.view.Copied() || k.view.Layout().NBytes() == 0 {
		k.sum, _ = r.sum(k.view)
	} else {
		r.ids++
		k.id = r.ids
		r.pending.Watch = append(r.pending.Watch, []any{k.id, k.of, string(k.view.Route())})
		r.dirty = true
	}
	r.kept[slot] = k
}

// forget has the program say nothing any more about a kept view.
func (r *rig) forget(k *kept) {
	if k.id != 0 {
		r.pending.Drop = append(r.pending.Drop, k.id)
	}
}

// let closes a kept view.
func (r *rig) let(slot int) {
	k := r.kept[slot]
	if k == nil {
		return
	}
	r.kept[slot] = nil
	r.forget(k)
	k.view.Close()
	r.note("close view %d", slot)
}

// again refreshes a kept view. If there is an error, or it shows what was published before, it goes on as it was.
func (r *rig) again(ctx context.Context, slot int) error {
	k := r.kept[slot]
	if k == nil {
		return nil
	}
	source, err := r.sources.of(k.of)
	if err != nil {
		return failed("source", "%s: %v", k.of, err)
	}
	next, changed, err := source.Refresh(ctx, k.view, k.how.options()...)
	r.note("refresh view %d of %s (%s): changed %v, %s", slot, k.of, k.how, changed, r.describe(next, err))
	if wrong := sameUnless(changed, k.view, next, err); wrong != nil && err == nil {
		return wrong
	}
	now, wrong := r.judge(k.of, k.how, next, err)
	switch {
	case wrong != nil:
		return about(wrong, "Refresh of view %d of %s (%s), changed %v", slot, k.of, k.how, changed)
	case err != nil:
		return nil //nolint:nilerr // it was judged
	case changed:
		r.forget(k)
		r.kept[slot] = nil
		if !now { // what it shows is not what the program would say of the name
			return next.Close()
		}
		r.enter(slot, &kept{view: next, of: k.of, how: k.how})
	case k.id == 0:
		k.sum, _ = r.sum(k.view)
	}
	return nil
}

// answeredLive asks whether a view is live until the program has answered in time. Live says what was known last if a busy
// program does not answer within a tenth of a second.
func answeredLive(v *core.View) (live, answered bool) {
	const bound, tries = 100 * time.Millisecond, 50
	for range tries {
		begun := time.Now()
		live = v.Live()
		if answered = time.Since(begun) < bound; answered || !live {
			break
		}
	}
	return live, answered
}

// live holds that a view which is reported live shows what its name leads to now.
func (r *rig) live(slot int) error {
	k := r.kept[slot]
	if k == nil {
		return nil
	}
	is, answered := answeredLive(k.view)
	r.note("view %d of %s is live: %v, by an answer of the program: %v", slot, k.of, is, answered)
	if !is || !answered {
		return nil
	}
	if k.view.Copied() {
		return failed("live", "view %d of %s is a copy, and live", slot, k.of)
	}
	s := r.said(k.of)
	if s.Err == "?" || s.ofBetween(k.view) {
		return nil
	}
	if len(s.accepted(k.view)) == 0 {
		return failed("live", "view %d of %s is live; the program says: error %s", slot, k.of, s.Err)
	}
	var wrong error
	for _, want := range s.accepted(k.view) {
		if wrong = r.compare(want, k.view); wrong == nil {
			return nil
		}
	}
	return inKind(about(wrong, "view %d of %s is live", slot, k.of), ", live")
}

// mustBeLive holds that a view which has just been taken is live, unless it is a copy. What JAX derives from an array is
// another array each time.
func (r *rig) mustBeLive(name string, v *core.View) error {
	if v.Framework() == "jax" && slices.Contains(r.hello.Derived, name) {
		return nil
	}
	if then := r.said(name).Then; then != nil && then.Moved && then.Fixed {
		return nil // the table of offers does not tell of memory that was replaced by force; Live does
	}
	if live := v.Live(); live == v.Copied() {
		return failed("live", "%s was taken just now, and is live: %v", r.describe(v, nil), live)
	}
	return nil
}

// poke writes one byte through a kept view.
func (r *rig) poke(e event) error {
	k := r.kept[e.keep]
	if k == nil || k.id == 0 || !k.view.Writable() || !k.view.Layout().Contiguous() || r.watch[k.id] == nil || r.watch[k.id].State != "live" {
		return nil
	}
	if len(r.watch[k.id].Forked) > 0 && !k.view.Live() {
		return nil // nobody would see it
	}
	b, err := k.view.Bytes()
	if err != nil {
		return failed("poke", "the bytes of a writable view of %s: %v", k.of, err)
	}
	at, value := int(e.n>>8)%len(b), byte(e.n)
	if k.view.Layout().DType() == core.Bool {
		value &= 1
	}
	b[at] = value
	r.note("view %d [byte %d] = %d", e.keep, at, value)
	r.pending.Poke = append(r.pending.Poke, []any{k.id, at, value})
	r.dirty = true
	return nil
}

// lookAtKept compares the views that were taken before with what the program says they must show.
func (r *rig) lookAtKept() error {
	for slot, k := range r.kept {
		if k == nil {
			continue
		}
		want, how, forked := k.sum, "a copy", []uint32(nil)
		if k.id != 0 {
			w := r.watch[k.id]
			if w == nil {
				continue // of before the last reset, or not told of yet
			}
			want, how, forked = w.Sum, w.State, w.Forked
		}
		sum, err := r.sum(k.view)
		if err != nil {
			return failed("kept", "view %d of %s: %v", slot, k.of, err)
		}
		if sum != want && !slices.Contains(forked, sum) {
			return failed("kept "+how, "view %d of %s, %s, %s, has crc %08x; the program says %08x", slot, k.of,
				r.describe(k.view, nil), how, sum, want)
		}
	}
	return nil
}
