package core

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"unicode"
)

// The categories of error. Each error of this module has exactly one category, which [Category] names: one of
// these, or the end of a context. The error matches its category with [errors.Is] on both sides of a process
// boundary.
//
// An error matches its causes, too, so it may match further sentinels: when a program is gone because its script
// raised, errors match both ErrUnavailable and ErrPython, and their category is ErrUnavailable. Use
// Category to tell errors apart, and errors.Is to ask for one thing.
var (
	ErrNotFound    = errors.New("not found")               // no array of that name
	ErrClosed      = errors.New("closed")                  // used after Close
	ErrReadOnly    = errors.New("read-only")               // writing was asked for and is not allowed
	ErrDType       = errors.New("wrong dtype")             // the element type is not what was asked for, or cannot be carried
	ErrLayout      = errors.New("layout not supported")    // shape, strides or extent are impossible or unfit
	ErrDevice      = errors.New("wrong device")            // the memory is on a device that the operation cannot use
	ErrPointer     = errors.New("invalid pointer")         // the memory is not there, or not as large as was said
	ErrNotShared   = errors.New("memory cannot be shared") // only a copy could cross, and copies were refused or would be useless
	ErrUnsupported = errors.ErrUnsupported                 // the standard one: callers may already test for it
	ErrVersion     = errors.New("incompatible version")    // host, plugin, interpreter or framework are too old or too new
	ErrUnavailable = errors.New("unavailable")             // the program is gone, never came up, or cannot answer now
	ErrPython      = errors.New("python error")            // Python code raised; see [PythonError]
	ErrConfig      = errors.New("bad configuration")       // the user's settings or arguments are wrong
	ErrProtocol    = errors.New("protocol violation")      // the other side answered what it must not
)

// Error is the error type of this module. It says what was tried, on what, why it failed, and what to do about it.
// Its text is "op object: category: cause; remedy [quirk]".
type Error struct {
	Op      string  // what was tried: "view", "start", "lease"
	Program string  // the program, if one is concerned
	Object  string  // the array, kernel, device or segment that is concerned, if one is
	Adapter string  // the adapter that decided, if one did
	Kind    error   // one of the categories above, or a context's error
	Quirk   QuirkID // the quirk that decided it, if one did
	Reason  Reason  // why memory could not be shared, with ErrNotShared
	Remedy  string  // what the user can do, or ""
	Remote  bool    // said by the program's side, not inferred on this one
	Err     error   // the cause
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	sep := func(s string) {
		if b.Len() > 0 {
			b.WriteString(s)
		}
	}
	b.WriteString(e.Op)
	if object := e.object(); object != "" {
		sep(" ")
		b.WriteString(object)
	}
	if e.Kind != nil {
		sep(": ")
		b.WriteString(e.Kind.Error())
	}
	if e.Reason != "" {
		sep(": ")
		b.WriteString(string(e.Reason))
	}
	if e.Err != nil && (e.Kind == nil || e.Err.Error() != e.Kind.Error()) {
		sep(": ")
		b.WriteString(e.Err.Error())
	}
	if e.Remedy != "" {
		sep("; ")
		b.WriteString(e.Remedy)
	}
	if e.Quirk != "" {
		sep(" ")
		b.WriteString("[" + string(e.Quirk) + "]")
	}
	return b.String()
}

// maxName bounds a name in an error's text, in bytes: names may come from anywhere. The field has all
// of it.
const maxName = 256

func (e *Error) object() string {
	array := e.Object
	if len(array) > maxName {
		array = strings.ToValidUTF8(array[:maxName], "") + "..."
	}
	if strings.ContainsFunc(array, unicode.IsControl) { // or it could pass for other lines of a log
		array = strconv.Quote(array)
	}
	switch {
	case e.Program != "" && array != "":
		return e.Program + "/" + array
	case array != "":
		return array
	default:
		return e.Program
	}
}

// Unwrap returns the category and the cause.
func (e *Error) Unwrap() []error {
	var errs []error
	if e.Kind != nil {
		errs = append(errs, e.Kind)
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}

// PythonError is an exception that Python code raised. It matches [ErrPython]. An exception behind it is another exception, which it
// is not: so [errors.Is] and [errors.As] stop at the one that was raised, and [PythonError.All] goes on.
type PythonError struct {
	Type      string // the exception's qualified name: "ValueError", "torch.OutOfMemoryError"
	Message   string // str(exception)
	Traceback string // as Python prints it, with the exceptions behind this one, or ""; of one behind another: where it was raised

	Notes   []string       // what add_note has added
	Cause   *PythonError   // the one after from: "raise ValueError from cause"
	Context *PythonError   // the one that was being handled, where there is no Cause and no "from None"
	Group   []*PythonError // the parts of an ExceptionGroup
}

// All gives the exception, the one that it came from and the one before that, and the parts of groups among them, each before those
// behind it. At most 64 arrive from a program, the nearest ones, none of them twice.
func (e *PythonError) All() iter.Seq[*PythonError] {
	return func(yield func(*PythonError) bool) { e.all(yield) }
}

func (e *PythonError) all(yield func(*PythonError) bool) bool {
	if e == nil {
		return true
	}
	if !yield(e) || !e.Cause.all(yield) || !e.Context.all(yield) {
		return false
	}
	for _, part := range e.Group {
		if !part.all(yield) {
			return false
		}
	}
	return true
}

// Error returns the last line of Python's own report: "ValueError: message".
func (e *PythonError) Error() string {
	if e.Message == "" {
		return e.Type
	}
	return e.Type + ": " + e.Message
}

// Is makes a PythonError match ErrPython.
func (e *PythonError) Is(target error) bool { return target == ErrPython }

// categories lists what Category knows, the ends of a context last.
var categories = []error{
	ErrNotFound, ErrClosed, ErrReadOnly, ErrDType, ErrLayout, ErrDevice, ErrPointer, ErrNotShared,
	ErrUnsupported, ErrVersion, ErrUnavailable, ErrPython, ErrConfig, ErrProtocol,
	context.Canceled, context.DeadlineExceeded,
}

// Category names the one category of an error: the text of the sentinel, such as "not found", or "canceled" or
// "deadline exceeded" for a context's end. An error matches the category that Category names with [errors.Is].
//
// The Kind of the outermost [Error] decides. Where no Error decides, the first category in the order of errors.Is
// does, and the end of a context only if there is no other: it may be the cause of another category. Category
// is "" for nil and for errors of other origin.
func Category(err error) string {
	kind := categoryOf(err)
	if kind == nil {
		return ""
	}
	return strings.TrimPrefix(kind.Error(), "context ")
}

// categoryOf finds the category.
func categoryOf(err error) error {
	var ended error
	decided := firstCategory(err, &ended)
	if decided == nil {
		return ended
	}
	return decided
}

// firstCategory walks the tree of err in the order of errors.Is. It notes the first end of a context that it
// passes, if nothing is noted yet.
func firstCategory(err error, ended *error) error {
	if e, ok := err.(*Error); ok && e.Kind != nil { //nolint:errorlint // this one, not one of its causes
		for _, kind := range categories {
			if errors.Is(e.Kind, kind) {
				return kind
			}
		}
		return nil
	}
	for _, kind := range categories {
		switch {
		case !matches(err, kind):
		case kind != context.Canceled && kind != context.DeadlineExceeded: //nolint:errorlint // of the list
			return kind
		case *ended == nil:
			*ended = kind
		}
	}
	switch u := err.(type) { //nolint:errorlint // one step of errors.Is
	case interface{ Unwrap() error }:
		return firstCategory(u.Unwrap(), ended)
	case interface{ Unwrap() []error }:
		for _, cause := range u.Unwrap() {
			if kind := firstCategory(cause, ended); kind != nil {
				return kind
			}
		}
	}
	return nil
}

// matches is the step of errors.Is that looks at err alone.
func matches(err, kind error) bool {
	is, ok := err.(interface{ Is(target error) bool })
	return err == kind || ok && is.Is(kind) //nolint:errorlint // see above
}
