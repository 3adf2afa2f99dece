// Package status is what a program says about its start, before gRPC can: JSON objects on the side socket.
package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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

// Message is one message of a starting program on the side socket: a JSON object in one datagram.
type Message struct {
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

// Parse reads one status message. Unknown members are ignored.
func Parse(msg []byte) (Message, error) {
	var s Message
	if err := json.Unmarshal(msg, &s); err != nil {
		return Message{}, fmt.Errorf("status message: %w", err)
	}
	if s.Stage == "" {
		return Message{}, errors.New("status message without a stage")
	}
	return s, nil
}

// Append appends the message to b.
func (s Message) Append(b []byte) ([]byte, error) {
	msg, err := json.Marshal(s)
	return append(b, msg...), err
}

// Err is the error that the message tells, as a *core.Error, or nil if it tells none. A kind that is
// not known is core.ErrProtocol.
func (s Message) Err() error {
	if s.Stage != StageError && s.Stage != StageLost {
		return nil
	}
	e := &core.Error{Op: "start", Remedy: valid(s.Remedy), Remote: true, Err: errors.New(valid(s.Message))}
	switch s.Kind {
	case KindVersion:
		e.Kind = core.ErrVersion
	case KindUnavailable:
		e.Kind = core.ErrUnavailable
	case KindConfig:
		e.Kind = core.ErrConfig
	case KindPython:
		e.Kind = core.ErrPython
		e.Err = &core.PythonError{Type: valid(s.Type), Message: valid(s.Message), Traceback: valid(s.Traceback)}
	default:
		e.Kind = core.ErrProtocol
	}
	return e
}

// valid is text for people. How long it is has a limit already: that of a datagram.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
