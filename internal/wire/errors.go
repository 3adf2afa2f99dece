package wire

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ndbridge/ndbridge/core"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// class is one category of error: core's word for it, the wire's, and the gRPC code nearest to it,
// which only tools look at.
type class struct {
	kind error
	wire pb.ErrorKind
	code codes.Code
}

// classes lists every category. An error of several is of the first: contexts' errors come last,
// because a category says more.
func classes() []class {
	return []class{
		{core.ErrNotFound, pb.ErrorKind_ERROR_KIND_NOT_FOUND, codes.NotFound},
		{core.ErrClosed, pb.ErrorKind_ERROR_KIND_CLOSED, codes.FailedPrecondition},
		{core.ErrReadOnly, pb.ErrorKind_ERROR_KIND_READ_ONLY, codes.PermissionDenied},
		{core.ErrDType, pb.ErrorKind_ERROR_KIND_DTYPE, codes.InvalidArgument},
		{core.ErrLayout, pb.ErrorKind_ERROR_KIND_LAYOUT, codes.InvalidArgument},
		{core.ErrDevice, pb.ErrorKind_ERROR_KIND_DEVICE, codes.FailedPrecondition},
		{core.ErrPointer, pb.ErrorKind_ERROR_KIND_POINTER, codes.OutOfRange},
		{core.ErrNotShared, pb.ErrorKind_ERROR_KIND_NOT_SHARED, codes.FailedPrecondition},
		{core.ErrUnsupported, pb.ErrorKind_ERROR_KIND_UNSUPPORTED, codes.Unimplemented},
		{core.ErrVersion, pb.ErrorKind_ERROR_KIND_VERSION, codes.FailedPrecondition},
		{core.ErrUnavailable, pb.ErrorKind_ERROR_KIND_UNAVAILABLE, codes.Unavailable},
		{core.ErrPython, pb.ErrorKind_ERROR_KIND_PYTHON, codes.Aborted},
		{core.ErrConfig, pb.ErrorKind_ERROR_KIND_CONFIG, codes.InvalidArgument},
		{core.ErrProtocol, pb.ErrorKind_ERROR_KIND_PROTOCOL, codes.Internal},
		{context.DeadlineExceeded, pb.ErrorKind_ERROR_KIND_DEADLINE_EXCEEDED, codes.DeadlineExceeded},
		{context.Canceled, pb.ErrorKind_ERROR_KIND_CANCELED, codes.Canceled},
	}
}

// classOf gives the category of err.
func classOf(err error) (class, bool) {
	if err == nil {
		return class{}, false
	}
	for _, c := range classes() {
		if errors.Is(err, c.kind) {
			return c, true
		}
	}
	return class{}, false
}

func classOfKind(kind pb.ErrorKind) (class, bool) {
	for _, c := range classes() {
		if c.wire == kind {
			return c, true
		}
	}
	return class{}, false
}

// toStatus gives the error with which a call fails: a status with one ErrorInfo as its detail.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	info := errorToProto(err)
	c, _ := classOfKind(info.GetKind())
	st := status.New(c.code, text(err.Error()))
	if detailed, err := st.WithDetails(info); err == nil { // fails only for the code OK
		st = detailed
	}
	return st.Err()
}

// errorToProto keeps all that core.Error knows. An error without a category, which a producer must
// not return, is a violation of the protocol.
func errorToProto(err error) *pb.ErrorInfo {
	e, found := errors.AsType[*core.Error](err)
	if !found {
		e = &core.Error{Err: err}
	}
	c, ok := classOf(e.Kind)
	if !ok {
		c, ok = classOf(err)
	}
	cause := causeText(err, e)
	if !ok {
		c, _ = classOf(core.ErrProtocol)
		cause = "error without a category: " + cause
	}
	reason, _ := enumToProto(reasons(), e.Reason) // an unknown one is as good as none
	info := &pb.ErrorInfo{
		Kind:    c.wire,
		Op:      text(e.Op),
		Program: text(e.Program),
		Array:   text(e.Object),
		Adapter: text(e.Adapter),
		Quirk:   text(string(e.Quirk)),
		Reason:  reason,
		Remedy:  text(e.Remedy),
		Cause:   text(cause),
	}
	for _, other := range classes() {
		if other.wire != c.wire && errors.Is(err, other.kind) {
			info.CauseKinds = append(info.CauseKinds, other.wire)
		}
	}
	if p, ok := errors.AsType[*core.PythonError](err); ok {
		info.Python = pythonToProto(p)
	}
	return info
}

// causeText is the text of e's cause, with the words that were wrapped around e.
func causeText(err error, e *core.Error) string {
	var cause string
	if e.Err != nil {
		cause = e.Err.Error()
	}
	if before, after, ok := strings.Cut(err.Error(), e.Error()); ok {
		return strings.TrimSuffix(before+cause+after, ": ")
	}
	return cause
}

// errorToCore gives the error as its own side made it, marked as remote.
func errorToCore(info *pb.ErrorInfo) *core.Error {
	reason, _ := enumToCore(reasons(), info.GetReason()) // an unknown one is as good as none
	e := &core.Error{
		Op:      text(info.GetOp()),
		Program: text(info.GetProgram()),
		Object:  text(info.GetArray()),
		Adapter: text(info.GetAdapter()),
		Quirk:   core.QuirkID(text(info.GetQuirk())),
		Reason:  reason,
		Remedy:  text(info.GetRemedy()),
		Remote:  true,
		Err:     causeToCore(info),
	}
	if c, ok := classOfKind(info.GetKind()); ok {
		e.Kind = c.kind
	} else {
		e.Kind = core.ErrProtocol // a category of a later version
	}
	return e
}

func causeToCore(info *pb.ErrorInfo) error {
	cause := &remoteError{text: text(info.GetCause())}
	if python := pythonToCore(info.GetPython()); python != nil {
		if cause.text == "" || cause.text == text(python.Error()) {
			return python
		}
		cause.causes = append(cause.causes, python)
	}
	for _, kind := range info.GetCauseKinds()[:min(len(info.GetCauseKinds()), len(classes()))] {
		if c, ok := classOfKind(kind); ok {
			cause.causes = append(cause.causes, c.kind)
		}
	}
	if cause.text == "" && len(cause.causes) == 0 {
		return nil
	}
	return cause
}

// remoteError is the cause of an error on the other side: its text, and what it is known to be.
type remoteError struct {
	text   string
	causes []error
}

func (c *remoteError) Error() string   { return c.text }
func (c *remoteError) Unwrap() []error { return c.causes }

// clipped is an error whose text the other side made, cut to a length that is of use.
type clipped struct{ error }

func (c clipped) Error() string { return text(c.error.Error()) }
func (c clipped) Unwrap() error { return c.error }

// detailOf gives the error that a failed call carries, if it does carry one.
func detailOf(err error) (*core.Error, bool) {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*pb.ErrorInfo); ok {
			return errorToCore(info), true
		}
	}
	return nil, false
}
