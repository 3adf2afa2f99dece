//go:build cuda

package hosttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// programVariable makes the test binary a program that has arrays on a GPU: it does what the test tells
// it over descriptor 3.
const programVariable = "NDTEST_CUDA_PROGRAM"

// order is what the test wants of the program.
type order struct {
	Do    string // "alloc", "free", "fill", "open", "check"
	Array contract.SegmentID
	Route core.Route
	Sizes []int64
	Value byte
	Gated bool // the work waits until the gate is opened
}

// answer is what it gets. Descriptors come with it.
type answer struct {
	Err  string
	IPC  *contract.CUDAIPC  `json:",omitempty"`
	VMM  *contract.CUDAVMM  `json:",omitempty"`
	Pool *contract.CUDAPool `json:",omitempty"`
	Word contract.CUDAWord
	Got  []byte // the values that the array has
}

const wordsID contract.SegmentID = 1 // the page with the fence's word

// The page, in bytes: the fence's word, and that of the gate, which holds work back.
const (
	pageSize = 4096
	wordAt   = 64
	gateAt   = 128
)

// program is the state of the process.
type program struct {
	conn   *fdpass.Conn
	ctx    driver.Context
	gpu    contract.UUID
	stream driver.Stream
	page   *shm.Mapping
	file   *os.File
	device uintptr // of the page
	value  uint32  // of the last fence
	gate   uint32  // of the last work that waits for the gate
	arrays map[contract.SegmentID]array
	nextID contract.SegmentID
}

type array struct {
	addr uintptr
	size int64
}

func programMain() error {
	conn, err := fdpass.FromFD(3)
	if err != nil {
		return err
	}
	p, err := newProgram(conn)
	if err != nil {
		return err
	}
	return p.serve()
}

func newProgram(conn *fdpass.Conn) (p *program, err error) {
	p = &program{conn: conn, arrays: make(map[contract.SegmentID]array), nextID: wordsID + 1}
	if err := driver.Init(); err != nil {
		return nil, err
	}
	if p.ctx, err = driver.PrimaryCtxRetain(0); err != nil {
		return nil, err
	}
	if p.gpu, err = driver.DeviceUUID(0); err != nil {
		return nil, err
	}
	if p.file, err = shm.Create("words", pageSize); err != nil {
		return nil, err
	}
	if p.page, err = shm.Map(p.file, pageSize, true); err != nil {
		return nil, err
	}
	return p, p.do(func() error {
		if p.stream, err = driver.StreamCreate(); err != nil {
			return err
		}
		if err := driver.HostRegister(p.page.Addr(), pageSize, driver.RegisterPortable|driver.RegisterMapped); err != nil {
			return err
		}
		p.device, err = driver.HostGetDevicePointer(p.page.Addr())
		return err
	})
}

func (p *program) do(f func() error) error { return driver.With(p.ctx, f) }

func (p *program) serve() error {
	for {
		msg, _, err := p.conn.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var o order
		if err := json.Unmarshal(msg, &o); err != nil {
			return err
		}
		var a answer
		var files []*os.File
		err = p.do(func() (err error) {
			switch o.Do {
			case "alloc":
				files, err = p.alloc(o, &a)
			case "free":
				err = driver.MemFree(p.arrays[o.Array].addr)
			case "fill":
				err = p.fill(o, &a)
				files = append(files, p.file)
			case "open":
				setWord(p.page, gateAt, p.gate)
			case "check":
				err = p.check(o, &a)
			default:
				err = fmt.Errorf("order %q", o.Do)
			}
			return err
		})
		if err != nil {
			a.Err = err.Error()
		}
		reply, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if err := p.conn.Send(reply, files...); err != nil {
			return err
		}
	}
}

func (p *program) id() contract.SegmentID {
	p.nextID++
	return p.nextID
}

// alloc makes an array, and what opens it elsewhere.
func (p *program) alloc(o order, a *answer) (files []*os.File, err error) {
	id := p.id()
	var made array
	for _, size := range o.Sizes {
		made.size += size
	}
	switch o.Route {
	case contract.RouteCUDAIPC:
		if made.addr, err = driver.MemAlloc(made.size); err != nil {
			return nil, err
		}
		h, err := driver.IPCGetMemHandle(made.addr)
		if err != nil {
			return nil, err
		}
		a.IPC = &contract.CUDAIPC{ID: id, Size: made.size, GPU: p.gpu, Mem: h}
	case contract.RouteCUDAVMM:
		a.VMM = &contract.CUDAVMM{GPU: p.gpu}
		if made.addr, err = driver.MemAddressReserve(made.size); err != nil {
			return nil, err
		}
		at := made.addr
		for i, size := range o.Sizes {
			if i > 0 {
				id = p.id()
			}
			h, err := driver.MemCreate(0, size)
			if err != nil {
				return nil, err
			}
			fd, err := driver.MemExport(h)
			if err != nil {
				return nil, err
			}
			files = append(files, os.NewFile(uintptr(fd), "chunk"))
			if err := driver.MemMap(at, size, h); err != nil {
				return nil, err
			}
			a.VMM.Chunks = append(a.VMM.Chunks, contract.CUDAChunk{ID: id, Size: size})
			at += uintptr(size)
		}
		err = driver.MemSetAccess(made.addr, made.size, 0, true)
	case contract.RouteCUDAPool:
		files, err = p.allocPooled(id, &made, a)
	default:
		err = fmt.Errorf("route %v", o.Route)
	}
	p.arrays[id] = made
	return files, err
}

func (p *program) allocPooled(id contract.SegmentID, made *array, a *answer) ([]*os.File, error) {
	pool, err := driver.PoolCreate(0)
	if err != nil {
		return nil, err
	}
	if made.addr, err = driver.MemAllocFromPoolAsync(made.size, pool, p.stream); err != nil {
		return nil, err
	}
	if err := driver.StreamSynchronize(p.stream); err != nil {
		return nil, err
	}
	fd, err := driver.PoolExport(pool) // first: the driver refuses allocations of a pool that was not
	if err != nil {
		return nil, err
	}
	data, err := driver.PoolExportPointer(made.addr)
	if err != nil {
		return nil, err
	}
	a.Pool = &contract.CUDAPool{ID: id, Size: made.size, GPU: p.gpu, Pool: p.id(), Pointer: data}
	return []*os.File{os.NewFile(uintptr(fd), "pool")}, nil
}

// fill sets all bytes of an array, maybe later, and gives the fence of that.
func (p *program) fill(o order, a *answer) error {
	made, ok := p.arrays[o.Array]
	if !ok {
		return fmt.Errorf("no array %d", o.Array)
	}
	if o.Gated {
		p.gate++
		if err := driver.StreamWaitValue32(p.stream, p.device+gateAt, p.gate); err != nil {
			return err
		}
	}
	if err := driver.MemsetD8Async(made.addr, o.Value, made.size, p.stream); err != nil {
		return err
	}
	p.value++
	a.Word = contract.CUDAWord{Page: wordsID, Size: pageSize, Offset: wordAt, Value: p.value}
	if err := driver.StreamWriteValue32(p.stream, p.device+wordAt, p.value); err != nil || o.Gated {
		return err
	}
	return driver.StreamSynchronize(p.stream)
}

// check tells which values the array has.
func (p *program) check(o order, a *answer) error {
	made := p.arrays[o.Array]
	data := make([]byte, made.size)
	if err := driver.MemcpyDtoH(data, made.addr); err != nil {
		return err
	}
	var seen [256]bool
	for _, b := range data {
		seen[b] = true
	}
	for value, is := range seen {
		if is {
			a.Got = append(a.Got, byte(value))
		}
	}
	return nil
}
