package model

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// look takes views by one route and compares them with what the program has said of the names.
func (r *rig) look(ctx context.Context, e event) error {
	route := r.lookers[e.n%uint64(len(r.lookers))]
	var first error
	names, how := strings.Fields(e.name), asking(e.opt)
	route.look(ctx, names, how, func(i int, v *core.View, err error) bool {
		r.note("%s(%q, %s): %s", route.name(), names[i], e.opt, r.describe(v, err))
		now, wrong := r.judge(names[i], how, v, err)
		if wrong == nil && err == nil && now && i == 0 {
			wrong = r.mustBeLive(names[i], v)
		}
		if wrong != nil && first == nil && !r.ignores(wrong) {
			first = about(wrong, "%s of %s (%s)", route.name(), names[i], e.opt)
		}
		return wrong == nil && err == nil && now && i == 0 && e.keep >= 0 && route.gives() && r.hold(e.keep, names[i], how, v)
	})
	return first
}

// judge says what is wrong with a view. now is whether it shows the object as it is, rather than as it was
// published.
func (r *rig) judge(name string, how asking, v *core.View, err error) (now bool, wrong error) {
	s := r.said(name)
	if _, ok := errors.AsType[*failure](err); ok {
		return false, err
	}
	if s.Err == "?" {
		return false, nil
	}
	if err != nil {
		return false, judgeError(how, s, err)
	}
	if exact := !s.Rebound && !s.Uncounted && r.hammer == nil; v.Version() < s.Version || v.Version() != s.Version && exact {
		return false, failed("version", "%s has version %d; the program says %d", r.describe(v, nil), v.Version(), s.Version)
	}
	var what []error
	for i, want := range s.accepted(v) {
		wrong := r.compare(want, v)
		if wrong == nil {
			return i == 0 && s.Is != nil, nil
		}
		what = append(what, wrong)
	}
	if len(what) == 0 {
		return false, failed("view is given", "a view of %v; the program says: error %s", r.describe(v, nil), s.Err)
	}
	if s.ofBetween(v) {
		return false, nil
	}
	if s.Then != nil {
		return false, inKind(what[0], ", published")
	}
	return false, what[0]
}

// said is what the program has said of a name.
func (r *rig) said(name string) *statement {
	if s := r.state[name]; s != nil {
		return s
	}
	return &statement{Err: "not found"}
}

// serial implements serials.
func (r *rig) serial(name string) (serial uint64, sure bool) {
	s := r.said(name)
	return s.Serial, !s.Rebound && r.hammer == nil
}

// accepted lists what a view of a name may show: the object as it is; or as it was when it was published, in
// the memory that it had then, unless the object has given that memory up, and is one whose memory is looked at
// anew. v is nil for a listing.
func (s *statement) accepted(v *core.View) []*saying {
	var all []*saying
	if s.Is != nil {
		all = append(all, s.Is)
	}
	if s.Then != nil && (!s.Then.Moved || s.Then.Fixed && v != nil && !v.Copied()) {
		all = append(all, s.Then.Is)
	}
	return all
}

// ofBetween reports whether a view may be of a version that a look has made since the program has published the object:
// with a layout of that moment, or of memory that the object has had for a while. What such a view shows nobody knows.
func (s *statement) ofBetween(v *core.View) bool {
	if !s.Rebound {
		return false
	}
	return s.Then != nil && s.Then.Fixed && !v.Copied() ||
		!slices.ContainsFunc(s.accepted(v), func(want *saying) bool { return want.describes(v.Layout()) })
}

// judgeError says whether an error is the one that the program expects.
func judgeError(opt asking, s *statement, err error) error {
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
	n, err := core.CopyBytes(context.Background(), r.buf, v)
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
func (s *statement) listedAs(entry *contract.Entry) error {
	switch {
	case s.Err == "*" || s.Err == "?" || s.Is == nil && entry.Err != nil && s.Err == core.Category(entry.Err):
		return nil
	case entry.Err != nil:
		return fmt.Errorf("%w; the program says %v", entry.Err, s)
	}
	l := entry.Layout
	for _, want := range s.accepted(nil) {
		if want.describes(l) {
			return nil
		}
	}
	return fmt.Errorf("%s%v %s; the program says %v", l.DType(), l.Shape(), l.Tag(), s)
}
