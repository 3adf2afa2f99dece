package wire

import (
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core/contract"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// maxChunks bounds the physical allocations of one array: 320 GB of the chunks of 20 MiB that PyTorch's
// expandable segments have.
const maxChunks = 1 << 14

// maxGPUs bounds the GPUs of one machine.
const maxGPUs = 256

func vmmToProto(h contract.CUDAVMM) *pb.CUDAVMM {
	out := &pb.CUDAVMM{Gpu: h.GPU[:]}
	for _, c := range h.Chunks {
		out.Chunks = append(out.Chunks, &pb.CUDAChunk{Id: uint64(c.ID), Size: c.Size})
	}
	return out
}

func ipcToCore(h *pb.CUDAIPC) (contract.Handle, error) {
	out := contract.CUDAIPC{ID: contract.SegmentID(h.GetId()), Size: h.GetSize()}
	return out, errors.Join(
		checkSize("allocation", out.Size), fill("UUID", out.GPU[:], h.GetGpu()), fill("IPC handle", out.Mem[:], h.GetMem()),
	)
}

func vmmToCore(h *pb.CUDAVMM) (contract.Handle, error) {
	if n := len(h.GetChunks()); n < 1 || n > maxChunks {
		return nil, fmt.Errorf("%d allocations, expected 1 to %d", n, maxChunks)
	}
	out := contract.CUDAVMM{Chunks: make([]contract.CUDAChunk, 0, len(h.GetChunks()))}
	var sum int64
	for _, c := range h.GetChunks() {
		if err := checkSize("allocation", c.GetSize()); err != nil {
			return nil, err
		}
		if sum += c.GetSize(); sum < 0 {
			return nil, errors.New("allocations of more than 2^63 bytes")
		}
		out.Chunks = append(out.Chunks, contract.CUDAChunk{ID: contract.SegmentID(c.GetId()), Size: c.GetSize()})
	}
	return out, fill("UUID", out.GPU[:], h.GetGpu())
}

func poolToCore(h *pb.CUDAPool) (contract.Handle, error) {
	out := contract.CUDAPool{ID: contract.SegmentID(h.GetId()), Size: h.GetSize(), Pool: contract.SegmentID(h.GetPool())}
	return out, errors.Join(
		checkSize("allocation", out.Size), fill("UUID", out.GPU[:], h.GetGpu()), fill("pool pointer", out.Pointer[:], h.GetPointer()),
	)
}

func wordToCore(w *pb.CUDAWord) (contract.Fence, error) {
	out := contract.CUDAWord{
		Page: contract.SegmentID(w.GetPage()), Size: w.GetSize(), Offset: w.GetOffset(), Value: w.GetValue(),
	}
	if out.Offset < 0 || out.Offset%4 != 0 || out.Offset > out.Size-4 {
		return nil, fmt.Errorf("a fence's word at byte %d of %d", out.Offset, out.Size)
	}
	return out, nil
}

func checkSize(what string, n int64) error {
	if n <= 0 {
		return fmt.Errorf("%s of %d bytes", what, n)
	}
	return nil
}

// fill copies bytes of a fixed number.
func fill(what string, dst, src []byte) error {
	if len(src) != len(dst) {
		return fmt.Errorf("%s of %d bytes, expected %d", what, len(src), len(dst))
	}
	copy(dst, src)
	return nil
}

func gpusToProto(list []contract.UUID) [][]byte {
	var out [][]byte
	for _, u := range list {
		out = append(out, u[:])
	}
	return out
}

func gpusToCore(list [][]byte) ([]contract.UUID, error) {
	if len(list) > maxGPUs {
		return nil, fmt.Errorf("%d GPUs, expected at most %d", len(list), maxGPUs)
	}
	var out []contract.UUID
	for _, b := range list {
		var u contract.UUID
		if err := fill("UUID", u[:], b); err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}
