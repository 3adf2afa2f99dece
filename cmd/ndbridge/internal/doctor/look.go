package doctor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// reportOf reads what a probe says: JSON in a bytearray, since there may be nothing but Python.
func reportOf(ctx context.Context, s *hostplugin.Session) (r report, err error) {
	v, err := s.View(ctx, "report")
	if err != nil {
		return r, err
	}
	defer v.Close() //nolint:errcheck // nothing was written
	text, err := core.Slice[uint8](v)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

// outcome is what became of one array.
type outcome struct {
	array
	route  core.Route
	reason core.Reason
	quirks []core.QuirkID
	took   time.Duration // until the host had it
	err    error         // why the host has it not
	differ string        // in what it differs from the program's

	written bool // the program has seen what the host wrote into it
}

// look takes a view of an array and compares it with what the program said.
func look(ctx context.Context, s *hostplugin.Session, a array) outcome {
	out := outcome{array: a}
	begin := time.Now()
	v, err := s.View(ctx, fmt.Sprintf("arrays[%q]", a.Name))
	out.took = time.Since(begin)
	if err != nil {
		out.err = err
		return out
	}
	defer v.Close() //nolint:errcheck // nothing was written
	out.route, out.reason, out.quirks = v.Route(), v.Reason(), v.Quirks()
	if a.SHA256 == "" {
		return out
	}
	data := make([]byte, v.NBytes())
	if _, err := core.CopyBytes(ctx, data, v); err != nil {
		out.err = err
		return out
	}
	sum := sha256.Sum256(data)
	switch {
	case !slices.Equal(v.Shape(), a.Shape):
		out.differ = fmt.Sprintf("the shape is %v, in Python %v", v.Shape(), a.Shape)
	case hex.EncodeToString(sum[:]) != a.SHA256:
		out.differ = "other elements than in Python"
	case !v.Copied() && !v.ReadOnly() && v.Contiguous() && v.Len() > 0:
		out.write(ctx, s)
	}
	return out
}

// write changes a byte of an array, lets the program look at it, and changes it back.
func (o *outcome) write(ctx context.Context, s *hostplugin.Session) {
	v, err := s.View(ctx, fmt.Sprintf("arrays[%q]", o.Name), hostplugin.Writable())
	if err != nil {
		o.err = err
		return
	}
	defer v.Close() //nolint:errcheck // its memory was mapped
	data, err := v.Bytes()
	if err != nil {
		o.err = err
		return
	}
	data[0] ^= 1
	defer func() { data[0] ^= 1 }()
	sum := sha256.Sum256(data)
	now, err := s.View(ctx, fmt.Sprintf("now[%q]", o.Name))
	if err != nil {
		o.err = err
		return
	}
	defer now.Close() //nolint:errcheck // nothing was written
	seen, err := core.Slice[uint8](now)
	if err != nil {
		o.err = err
		return
	}
	if o.written = bytes.Equal(seen, sum[:]); !o.written {
		o.differ = "Python does not see what the host writes"
	}
}
