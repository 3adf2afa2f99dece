package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// Search serves contract.Searcher.
func (s *service) Search(req *pb.SearchRequest, stream grpc.ServerStreamingServer[pb.SearchResponse]) error {
	if err := s.ready("search"); err != nil {
		return err
	}
	searcher, ok := s.producer.(contract.Searcher)
	if !ok {
		return violation("search", errors.New("it was not offered"))
	}
	names, err := toTexts[string]("name", req.GetNames())
	if err := errors.Join(checkText("pattern", req.GetPattern()), err); err != nil {
		return violation("search", err)
	}
	found, err := searcher.Search(stream.Context(), contract.Search{
		Pattern: req.GetPattern(), Limit: int(req.GetLimit()), Numbers: req.GetNumbers(), Names: names,
	})
	if err != nil {
		return toStatus(err)
	}
	for part := range slices.Chunk(found.Numbers, entryBatch) {
		if err := stream.Send(&pb.SearchResponse{Numbers: numbersToProto(part)}); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(found.Entries, entryBatch) {
		batch := &pb.SearchResponse{}
		for _, entry := range part {
			message, err := entryToProto(entry)
			if err != nil {
				return violation("search", fmt.Errorf("entry %q: %w", entry.Name, err))
			}
			batch.Entries = append(batch.Entries, message)
		}
		if err := stream.Send(batch); err != nil {
			return err
		}
	}
	return stream.Send(&pb.SearchResponse{
		More: uint32(min(uint64(max(found.More, 0)), math.MaxUint32)), Partial: found.Partial, Importing: found.Importing,
	})
}

// Search implements contract.Searcher. The error wraps core.ErrUnsupported if the other side cannot.
func (c *Client) Search(ctx context.Context, s contract.Search) (contract.Found, error) {
	const op = "search"
	c.mu.Lock()
	able := c.search
	c.mu.Unlock()
	if !able {
		return contract.Found{}, c.local(op, s.Pattern, core.ErrUnsupported, errors.New("the program cannot find names by patterns"))
	}
	callCtx, done := c.begin(ctx)
	defer done()
	limit := uint32(min(uint64(max(s.Limit, 0)), math.MaxUint32))
	request := &pb.SearchRequest{Pattern: s.Pattern, Limit: limit, Numbers: s.Numbers, Names: s.Names}
	stream, err := c.rpc.Search(callCtx, request, callOptions()...)
	if err != nil {
		return contract.Found{}, c.failed(ctx, op, s.Pattern, err)
	}
	var found contract.Found
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return contract.Found{}, c.failed(ctx, op, s.Pattern, err)
		}
		found.More, found.Partial, found.Importing = int(resp.GetMore()), resp.GetPartial(), resp.GetImporting()
		if max(len(found.Entries)+len(resp.GetEntries()), len(found.Numbers)+len(resp.GetNumbers())) > maxEntries {
			return contract.Found{}, c.violated(op, s.Pattern, fmt.Errorf("more than %d arrays or numbers", maxEntries))
		}
		for _, message := range resp.GetNumbers() {
			number, err := numberToCore(message)
			if err != nil {
				return contract.Found{}, c.violated(op, s.Pattern, err)
			}
			found.Numbers = append(found.Numbers, number)
		}
		for _, message := range resp.GetEntries() {
			entry, err := entryToCore(message)
			if err != nil {
				return contract.Found{}, c.violated(op, s.Pattern, err)
			}
			found.Entries = append(found.Entries, entry)
		}
	}
}

func numbersToProto(numbers []contract.Number) []*pb.Number {
	out := make([]*pb.Number, len(numbers))
	for i, n := range numbers {
		out[i] = &pb.Number{Name: text(n.Name), Value: &pb.Number_Real{Real: n.Value}}
		if n.Whole {
			out[i].Value = &pb.Number_Whole{Whole: n.Int}
		}
	}
	return out
}

func numberToCore(n *pb.Number) (contract.Number, error) {
	out := contract.Number{Name: n.GetName(), Int: n.GetWhole(), Value: n.GetReal()}
	switch n.GetValue().(type) {
	case *pb.Number_Whole:
		out.Whole, out.Value = true, float64(out.Int)
	case *pb.Number_Real:
	default:
		return out, fmt.Errorf("number %q: no value", out.Name)
	}
	return out, checkText("name", out.Name)
}
