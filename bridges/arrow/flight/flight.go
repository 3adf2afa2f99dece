// Package flight serves the arrays of a Python program to clients of Arrow Flight, in any language.
//
// A flight is an array. Its descriptor is a path of one element, or a command: the name as a host would say it, such as
// "frame" or "model.weight". GetFlightInfo and GetSchema take that, DoGet takes it as the ticket, and ListFlights lists the
// arrays that the program has now and that Arrow can say.
//
// DoGet sends the array as a table of one column, of the type that arrow.Type says, in batches of less than 4 MiB, which is
// the longest message that clients in Go and some others take unless they are told otherwise. A row of several axes is never divided:
// for rows that are longer raise the client's limit, in Go by grpc.MaxCallRecvMsgSize. The elements
// go from the program's memory to the network; a batch is copied before that where they are not contiguous, or lie on a GPU or in a file. The
// table is the array as it is while it is sent: what a program publishes and leaves alone arrives whole.
package flight

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	bridge "github.com/ndbridge/ndbridge/bridges/arrow"
)

// batch is about how many bytes of elements are sent at once: with what Arrow and gRPC add, less than 4 MiB.
const batch = 4<<20 - 64<<10

// Server serves the arrays of one session. It checks nobody: who can connect can read all arrays of the program. It is safe for
// concurrent use, and does not close the session.
type Server struct {
	flight.BaseFlightServer
	session   *hostplugin.Session
	allocator memory.Allocator
}

// New makes a Server of a session, to be given to flight.Server.RegisterFlightService.
func New(session *hostplugin.Session) *Server {
	return &Server{session: session, allocator: memory.DefaultAllocator}
}

// ListFlights implements flight.FlightServer. The criteria are not looked at.
func (s *Server) ListFlights(_ *flight.Criteria, stream flight.FlightService_ListFlightsServer) error {
	for entry, err := range s.session.Arrays(stream.Context()) {
		if err != nil {
			return say(err)
		}
		if entry.Err != nil {
			continue // it cannot be had
		}
		info, err := s.info(entry.Name, entry.Layout)
		if err != nil {
			continue // Arrow has no such arrays
		}
		if err := stream.Send(info); err != nil {
			return err
		}
	}
	return nil
}

// GetFlightInfo implements flight.FlightServer.
func (s *Server) GetFlightInfo(ctx context.Context, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	name, err := nameOf(d)
	if err != nil {
		return nil, err
	}
	v, err := s.session.View(ctx, name, hostplugin.NoWait())
	if err != nil {
		return nil, say(err)
	}
	defer v.Close() //nolint:errcheck // the session says what failed
	info, err := s.info(name, v.Layout())
	return info, say(err)
}

// GetSchema implements flight.FlightServer.
func (s *Server) GetSchema(ctx context.Context, d *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	info, err := s.GetFlightInfo(ctx, d)
	if err != nil {
		return nil, err
	}
	return &flight.SchemaResult{Schema: info.GetSchema()}, nil
}

// DoGet implements flight.FlightServer.
func (s *Server) DoGet(ticket *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	name := string(ticket.GetTicket())
	v, err := s.session.View(stream.Context(), name, hostplugin.NoWait())
	if err != nil {
		return say(err)
	}
	defer v.Close() //nolint:errcheck // the session says what failed
	return say(s.send(stream, name, v))
}

func (s *Server) send(stream flight.FlightService_DoGetServer, name string, v *core.View) (err error) {
	dt, err := bridge.Type(v.Layout())
	if err != nil {
		return err
	}
	schema := schemaOf(name, dt)
	w := flight.NewRecordWriter(stream, ipc.WithSchema(schema))
	defer func() { err = errors.Join(err, w.Close()) }()
	if v.Rank() == 0 {
		return s.write(stream.Context(), w, schema, v)
	}
	rows := v.Dim(0)
	each := rowsOf(v.Layout())
	for lo := 0; lo < rows && err == nil; lo += each {
		var part *core.View
		if part, err = v.Sub(0, lo, min(lo+each, rows)); err == nil {
			err = s.write(stream.Context(), w, schema, part)
			_ = part.Close() // derived
		}
	}
	return err
}

// rowsOf is how many rows are sent at once. Rows that share their memory may be so many that they times batch is no int.
func rowsOf(l core.Layout) int {
	row := l.NBytes() / int64(max(l.Dim(0), 1))
	return int(max(batch/max(row, 1), 1))
}

// write sends some rows, in place if they can be.
func (s *Server) write(ctx context.Context, w *flight.Writer, schema *arrow.Schema, rows *core.View) error {
	column, err := s.column(ctx, rows)
	if err != nil {
		return err
	}
	defer column.Release()
	record := array.NewRecordBatch(schema, []arrow.Array{column}, int64(column.Len()))
	defer record.Release()
	return w.Write(record)
}

// column gives an array, in place if it can be. Who reads a file in place ends with a signal if the program truncates it meanwhile.
func (s *Server) column(ctx context.Context, v *core.View) (arrow.Array, error) {
	if v.Route() == contract.RouteMappedFile {
		return bridge.Copy(ctx, v, s.allocator)
	}
	column, err := bridge.Array(v)
	if errors.Is(err, core.ErrLayout) || errors.Is(err, core.ErrDevice) {
		return bridge.Copy(ctx, v, s.allocator)
	}
	return column, err
}

func schemaOf(name string, dt arrow.DataType) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: name, Type: dt}}, nil)
}

func (s *Server) info(name string, l core.Layout) (*flight.FlightInfo, error) {
	dt, err := bridge.Type(l)
	if err != nil {
		return nil, err
	}
	rows := 1
	if l.Rank() > 0 {
		rows = l.Dim(0)
	}
	return &flight.FlightInfo{
		Schema:           flight.SerializeSchema(schemaOf(name, dt), s.allocator),
		FlightDescriptor: &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{name}},
		Endpoint:         []*flight.FlightEndpoint{{Ticket: &flight.Ticket{Ticket: []byte(name)}}},
		TotalRecords:     int64(rows), TotalBytes: l.NBytes(),
	}, nil
}

// nameOf gives the name that a descriptor means.
func nameOf(d *flight.FlightDescriptor) (string, error) {
	switch {
	case d.GetType() == flight.DescriptorCMD:
		return string(d.GetCmd()), nil
	case len(d.GetPath()) == 1:
		return d.GetPath()[0], nil
	}
	return "", status.Errorf(codes.InvalidArgument, "a path of %d elements; a flight is an array, whose name is the only element", len(d.GetPath()))
}

// say makes an error one of gRPC's, of the code by which clients tell errors apart.
func say(err error) error {
	if err == nil {
		return nil
	}
	code := codes.Unknown
	for category, c := range map[string]codes.Code{
		core.Category(core.ErrNotFound): codes.NotFound, core.Category(core.ErrDType): codes.InvalidArgument, core.Category(core.ErrLayout): codes.InvalidArgument,
		core.Category(core.ErrNotShared): codes.FailedPrecondition, core.Category(core.ErrUnavailable): codes.Unavailable, core.Category(core.ErrClosed): codes.Unavailable,
		core.Category(core.ErrConfig): codes.InvalidArgument, core.Category(core.ErrUnsupported): codes.Unimplemented,
		core.Category(context.Canceled): codes.Canceled, core.Category(context.DeadlineExceeded): codes.DeadlineExceeded,
	} {
		if core.Category(err) == category {
			code = c
		}
	}
	return status.Error(code, err.Error())
}
