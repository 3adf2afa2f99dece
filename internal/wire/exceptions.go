package wire

import (
	"github.com/ndbridge/ndbridge/core"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// Limits on an exception with all that is behind it.
const (
	maxExceptions = 64        // of them
	maxNotes      = 64        // of one
	maxTold       = 256 << 10 // bytes of their texts
	leastTold     = 1 << 10   // with less room than that, nothing more is told
)

// told is how much more may be told of an exception.
type told struct{ exceptions, bytes int }

// pythonToProto gives the message of an exception, of which there may be none.
func pythonToProto(e *core.PythonError) *pb.PythonError {
	t := told{maxExceptions, maxTold}
	return t.toProto(e)
}

// pythonToCore gives the exception of a message, of which there may be none.
func pythonToCore(p *pb.PythonError) *core.PythonError {
	t := told{maxExceptions, maxTold}
	return t.toCore(p)
}

func (t *told) toProto(e *core.PythonError) *pb.PythonError {
	if e == nil || t.over() {
		return nil
	}
	t.exceptions--
	p := &pb.PythonError{Type: t.text(e.Type, maxText), Message: t.text(e.Message, maxText), Traceback: t.text(e.Traceback, maxLongText), Notes: t.notes(e.Notes)}
	p.Cause, p.Context = t.toProto(e.Cause), t.toProto(e.Context)
	for _, part := range e.Group {
		if part := t.toProto(part); part != nil {
			p.Group = append(p.Group, part)
		}
	}
	return p
}

func (t *told) toCore(p *pb.PythonError) *core.PythonError {
	if p == nil || t.over() {
		return nil
	}
	t.exceptions--
	e := &core.PythonError{
		Type: t.text(p.GetType(), maxText), Message: t.text(p.GetMessage(), maxText), Traceback: t.text(p.GetTraceback(), maxLongText), Notes: t.notes(p.GetNotes()),
	}
	e.Cause, e.Context = t.toCore(p.GetCause()), t.toCore(p.GetContext())
	for _, part := range p.GetGroup() {
		if part := t.toCore(part); part != nil {
			e.Group = append(e.Group, part)
		}
	}
	return e
}

// over reports whether no other exception may be told of.
func (t *told) over() bool { return t.exceptions == 0 || t.bytes < leastTold }

func (t *told) text(s string, limit int) string {
	s = clip(s, min(limit, max(t.bytes, leastTold)))
	t.bytes -= len(s)
	return s
}

func (t *told) notes(notes []string) []string {
	var of []string
	for _, note := range notes[:min(len(notes), maxNotes)] {
		if t.bytes < leastTold {
			break
		}
		of = append(of, t.text(note, maxText))
	}
	return of
}
