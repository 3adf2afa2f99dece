package model

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// look takes views by one route and compares them with what the program has said of the names.
func (r *rig) look(ctx context.Context, e event) error {
	route := r.lookers[e.n%uint64(len(r.lookers))]
	opts := []hostplugin.ViewOption{hostplugin.NoWait()}
	switch e.opt {
	case "nocopy":
		opts = append(opts, hostplugin.NoCopy())
	case "writable":
		opts = append(opts, hostplugin.Writable())
	case "allow":
		opts = append(opts, hostplugin.AllowCopy())
	}
	var first error
	names := strings.Fields(e.name)
	route.look(ctx, names, opts, func(i int, v *core.View, err error) bool {
		r.note("%s(%q, %s): %s", route.name(), names[i], e.opt, r.describe(v, err))
		now, wrong := r.judge(names[i], e.opt, v, err)
		if wrong != nil && first == nil && !r.ignores(wrong) {
			first = about(wrong, "%s of %s (%s)", route.name(), names[i], e.opt)
		}
		return wrong == nil && err == nil && now && i == 0 && e.keep >= 0 && r.hold(e.keep, names[i], v)
	})
	return first
}

// judge says what is wrong with a view. now is whether it shows the object as it is, rather than as it was
// published.
func (r *rig) judge(name, opt string, v *core.View, err error) (now bool, wrong error) {
	s := r.state[name]
	if s == nil {
		s = &statement{Err: "not found"}
	}
	if s.Err == "?" {
		return false, nil
	}
	if err != nil {
		return false, judgeError(opt, s, err)
	}
	var what []error
	for i, want := range s.accepted() {
		wrong := r.compare(want, v)
		if wrong == nil {
			return i == 0 && s.Is != nil, nil
		}
		what = append(what, wrong)
	}
	if len(what) == 0 {
		return false, failed("view is given", "a view of %v; the program says: error %s", r.describe(v, nil), s.Err)
	}
	if s.Then != nil {
		return false, inKind(what[0], ", published")
	}
	return false, what[0]
}

// accepted lists what a view of a name may show: the object as it is; or as it was when it was published, in
// the memory that it had then, unless the object has given that memory up.
func (s *statement) accepted() []*saying {
	var all []*saying
	if s.Is != nil {
		all = append(all, s.Is)
	}
	if s.Then != nil && !s.Then.Moved {
		all = append(all, s.Then.Is)
	}
	return all
}

// judgeError says whether an error is the one that the program expects.
func judgeError(opt string, s *statement, err error) error {
	for _, never := range []error{core.ErrProtocol, core.ErrPointer, core.ErrUnavailable, core.ErrClosed, core.ErrConfig} {
		if errors.Is(err, never) && (s.Is != nil || s.Err != "*") {
			return failed("view fails: "+core.Category(err), "%v", err)
		}
	}
	refused := opt == "nocopy" && errors.Is(err, core.ErrNotShared) ||
		opt == "writable" && (errors.Is(err, core.ErrNotShared) || errors.Is(err, core.ErrReadOnly))
	switch {
	case refused && s.Err != "not found":
		return nil
	case s.Is != nil:
		return failed("view fails: "+core.Category(err), "%v; the program says %v", err, s.Is)
	case s.Err != "*" && core.Category(err) != s.Err:
		return failed("view fails: "+core.Category(err), "%v; the program says: error %s", err, s.Err)
	}
	return nil
}

// compare says how a view differs from what the program says.
func (r *rig) compare(want *saying, v *core.View) error {
	l := v.Layout()
	if !want.describes(l) {
		return failed("layout", "%s; the program says %v", r.describe(v, nil), want)
	}
	if want.ReadOnly && (!l.ReadOnly() || v.Writable()) {
		return failed("read-only", "%s, which may be written; in the program it may not", r.describe(v, nil))
	}
	sum, err := r.sum(v)
	if err != nil {
		return failed("copy", "%s: %v", r.describe(v, nil), err)
	}
	if sum != want.Sum {
		return failed("elements", "%s has crc %08x; the program says %v", r.describe(v, nil), sum, want)
	}
	return nil
}

// describes reports whether a layout is what the program says.
func (s *saying) describes(l core.Layout) bool {
	return l.DType().String() == s.DType && (l.Tag() == s.Tag || s.Tag == "*" && l.DType().Opaque()) && slices.Equal(l.Shape(), s.Shape)
}

func (r *rig) sum(v *core.View) (uint32, error) {
	n := int(v.Layout().NBytes())
	if len(r.buf) < n {
		r.buf = make([]byte, n)
	}
	n, err := core.CopyBytes(r.buf, v)
	return crc32.ChecksumIEEE(r.buf[:n]), err
}

func (r *rig) describe(v *core.View, err error) string {
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("%s%v %s by %v", v.Layout().DType(), v.Layout().Shape(), v.Layout().Tag(), v.Route())
	if v.Copied() {
		text += fmt.Sprintf(" (%v)", v.Reason())
	}
	return text
}

// hold keeps a view, in the place of another one.
func (r *rig) hold(slot int, name string, v *core.View) bool {
	r.let(slot)
	r.ids++
	k := &kept{view: v, id: r.ids, of: name}
	if v.Copied() || v.Layout().NBytes() == 0 {
		k.sum, _ = r.sum(v)
		k.id = 0
	} else {
		r.pending.Watch = append(r.pending.Watch, []any{k.id, name, v.Route().String()})
		r.dirty = true
	}
	r.kept[slot] = k
	r.note("that is view %d", slot)
	return true
}

// let closes a kept view.
func (r *rig) let(slot int) {
	k := r.kept[slot]
	if k == nil {
		return
	}
	r.kept[slot] = nil
	if k.id != 0 {
		r.pending.Drop = append(r.pending.Drop, k.id)
	}
	k.view.Close()
	r.note("close view %d", slot)
}

// poke writes one byte through a kept view.
func (r *rig) poke(e event) error {
	k := r.kept[e.keep]
	if k == nil || k.id == 0 || !k.view.Writable() || !k.view.Layout().Contiguous() || r.watch[k.id] == nil || r.watch[k.id].State != "live" {
		return nil
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
		want, how := k.sum, "a copy"
		if k.id != 0 {
			w := r.watch[k.id]
			if w == nil {
				continue // of before the last reset, or not told of yet
			}
			want, how = w.Sum, w.State
		}
		sum, err := r.sum(k.view)
		if err != nil {
			return failed("kept", "view %d of %s: %v", slot, k.of, err)
		}
		if sum != want {
			return failed("kept "+how, "view %d of %s, %s, %s, has crc %08x; the program says %08x", slot, k.of,
				r.describe(k.view, nil), how, sum, want)
		}
	}
	return nil
}

// list compares the listing of all arrays with what the program has said.
func (r *rig) list(ctx context.Context) error {
	seen := map[string]bool{}
	for entry, err := range r.session.Arrays(ctx) {
		if err != nil {
			return failed("list", "Session.Arrays: %v", err)
		}
		seen[entry.Name] = true
		s := r.state[entry.Name]
		if s == nil {
			return failed("list", "Session.Arrays lists %s, which is no array", entry.Name)
		}
		if err := s.listedAs(&entry); err != nil {
			return failed("list", "Session.Arrays says of %s: %v", entry.Name, err)
		}
	}
	for _, name := range r.hello.Published {
		if s := r.state[name]; s != nil && s.Then != nil && !seen[name] {
			return failed("list", "Session.Arrays does not list %s, which is published", name)
		}
	}
	return nil
}

// listedAs says what is wrong with an entry. A listing does not touch memory, and so need not know what a view would
// find there.
func (s *statement) listedAs(entry *core.Entry) error {
	switch {
	case s.Err == "*" || s.Err == "?" || s.Is == nil && entry.Err != nil && s.Err == core.Category(entry.Err):
		return nil
	case entry.Err != nil:
		return fmt.Errorf("%w; the program says %v", entry.Err, s)
	}
	l := entry.Layout
	for _, want := range s.accepted() {
		if want.describes(l) {
			return nil
		}
	}
	return fmt.Errorf("%s%v %s; the program says %v", l.DType(), l.Shape(), l.Tag(), s)
}
