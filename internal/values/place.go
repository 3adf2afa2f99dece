package values

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

// PlaceError is an error at a place in a value.
type PlaceError struct {
	Path string // from the value to the place: `["a"][3]`
	Kind error  // a category of core's; nil: that of Err
	Err  error
}

// Error implements error.
func (f *PlaceError) Error() string {
	if f.Path == "" {
		return f.Err.Error()
	}
	return f.Path + ": " + f.Err.Error()
}

// Unwrap returns the category, if there is one, and the cause.
func (f *PlaceError) Unwrap() []error {
	if f.Kind == nil {
		return []error{f.Err}
	}
	return []error{f.Kind, f.Err}
}

// Cannot gives the error of a value that cannot cross.
func Cannot(format string, args ...any) error {
	return &PlaceError{Kind: core.ErrUnsupported, Err: fmt.Errorf(format, args...)}
}

// A puts the article before the name of a type.
func A(name string) string {
	if name != "" && strings.ContainsRune("aeioAEIO", rune(name[0])) {
		return "an " + name
	}
	return "a " + name
}

// Place gives the place that an error of [Report] names.
func Place(err error) string {
	if f, ok := err.(*PlaceError); ok { //nolint:errorlint // see At
		return f.Path
	}
	if e, ok := errors.AsType[*core.Error](err); ok && isPath(e.Object) {
		return e.Object
	}
	return ""
}

func isPath(s string) bool { return s != "" && strings.ContainsRune("[.{", rune(s[0])) }

// TooDeep gives the error of a value that has more than [MaxDepth] containers in each other.
func TooDeep() error {
	return Cannot("containers lie more than %d deep in each other, or in themselves", MaxDepth)
}

// TooLarge gives the error of a value whose form is larger than [MaxSize].
func TooLarge() error { return Cannot("a value of more than %d MiB cannot cross", MaxSize>>20) }

// maxPath is how much of a path is kept, in bytes: those that go deepest are of values that contain themselves.
const maxPath = 200

// At says of an error that it belongs to a place in a value, one step above the place that the error names already.
func At(step string, err error) error {
	f, ok := err.(*PlaceError) //nolint:errorlint // not one that a function of the caller's has wrapped
	if !ok {
		return &PlaceError{Path: step, Err: err}
	}
	f.Path = step + f.Path
	if len(f.Path) > maxPath {
		f.Path = strings.ToValidUTF8(f.Path[:maxPath/2], "") + "..."
	}
	return f
}

// Index is the step to an item of a list.
func Index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// maxKey is how much of a key a path shows, in bytes.
const maxKey = 40

// Key is the step to the value under a key of a dict that is text.
func Key(text string) string {
	if len(text) > maxKey {
		text = strings.ToValidUTF8(text[:maxKey], "") + "..."
	}
	return "[" + strconv.Quote(text) + "]"
}

// Report makes a [*core.Error] of an error at a place in a value: what was tried, and where it failed. An error that
// has a category of its own keeps it.
func Report(op string, err error) error {
	f, ok := err.(*PlaceError) //nolint:errorlint // see At
	switch {
	case err == nil:
		return nil
	case !ok:
		return err
	case f.Kind == nil && f.Path == "":
		return f.Err
	case f.Kind == nil:
		return f
	}
	return &core.Error{Op: op, Object: f.Path, Kind: f.Kind, Err: f.Err}
}

// Located puts the place that an error of [Report] or [At] names into its text, behind what it is a place in. Who calls it
// gives the error another object.
func Located(what string, err error) error {
	if f, ok := err.(*PlaceError); ok && f.Kind == nil && f.Path != "" { //nolint:errorlint // see At
		return located(what+f.Path, f.Err)
	}
	e, ok := errors.AsType[*core.Error](err)
	if !ok || !isPath(e.Object) {
		return err
	}
	located := *e
	located.Object, located.Err = "", fmt.Errorf("%s%s: %w", what, e.Object, e.Err)
	return &located
}

// located puts a place into the text of an error of its own category, which comes from what is there.
func located(place string, err error) error {
	e, ok := err.(*core.Error) //nolint:errorlint // what wraps one has a text of its own
	if !ok {
		return &PlaceError{Path: place, Err: err}
	}
	there := *e
	if e.Err == nil {
		there.Err = errors.New(place)
	} else {
		there.Err = fmt.Errorf("%s: %w", place, e.Err)
	}
	return &there
}
