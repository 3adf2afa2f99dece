package wire

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
)

// Stages of a program, as its status messages name them.
const (
	StagePython = "python" // the interpreter runs the bootstrap; Version, Implementation and Executable are set
	StageLoaded = "loaded" // the plugin's library is loaded
	StageError  = "error"  // the start cannot go on; Kind, Message and the rest are set
	StageLost   = "lost"   // the program must end, at any time: the plugin cannot go on; the same are set
)

// Kinds of StageError and StageLost.
const (
	KindVersion     = "version"     // the interpreter is too old, or not one that can load the plugin
	KindUnavailable = "unavailable" // something that the start needs is missing
	KindPython      = "python"      // Python code raised
	KindConfig      = "config"      // the user named something that is not there

	KindProtocol = "protocol" // what came is not a status message; never sent
)

// Status is what a program says about its start, before gRPC can: a JSON object in one datagram on the side socket.
type Status struct {
	Stage string `json:"stage"`

	Version        string `json:"version,omitempty"`        // "3.11.7"
	Implementation string `json:"implementation,omitempty"` // "cpython"
	Executable     string `json:"executable,omitempty"`

	Kind      string `json:"kind,omitempty"`
	Type      string `json:"type,omitempty"` // the exception's type, with KindPython
	Message   string `json:"message,omitempty"`
	Remedy    string `json:"remedy,omitempty"`
	Traceback string `json:"traceback,omitempty"`
}

// ParseStatus reads one status message. Unknown members are ignored.
func ParseStatus(msg []byte) (Status, error) {
	var s Status
	if err := json.Unmarshal(msg, &s); err != nil {
		return Status{}, fmt.Errorf("status message: %w", err)
	}
	if s.Stage == "" {
		return Status{}, errors.New("status message without a stage")
	}
	return s, nil
}

// Append appends the message to b.
func (s Status) Append(b []byte) ([]byte, error) {
	msg, err := json.Marshal(s)
	return append(b, msg...), err
}

// Err is the error that the message tells, as a *core.Error, or nil if it tells none. A kind that is
// not known is core.ErrProtocol.
func (s Status) Err() error {
	if s.Stage != StageError && s.Stage != StageLost {
		return nil
	}
	e := &core.Error{Op: "start", Remedy: longText(s.Remedy), Remote: true, Err: errors.New(longText(s.Message))}
	switch s.Kind {
	case KindVersion:
		e.Kind = core.ErrVersion
	case KindUnavailable:
		e.Kind = core.ErrUnavailable
	case KindConfig:
		e.Kind = core.ErrConfig
	case KindPython:
		e.Kind = core.ErrPython
		e.Err = &core.PythonError{Type: longText(s.Type), Message: longText(s.Message), Traceback: longText(s.Traceback)}
	default:
		e.Kind = core.ErrProtocol
	}
	return e
}
