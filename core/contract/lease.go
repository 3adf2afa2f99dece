package contract

import (
	"errors"
	"fmt"
	"time"

	"github.com/ndbridge/ndbridge/core"
)

// LeaseID names a lease within one producer. A producer never uses an ID twice.
type LeaseID uint64

// Lease is a producer's promise that an array's memory stays valid until it is released.
type Lease struct {
	ID        LeaseID
	Layout    core.Layout // Offset is relative to the handle's first byte
	Handle    Handle      // how the memory is reached
	Fence     Fence       // what must have happened before it may be touched
	Framework string      // whose array it is: "numpy"
	Route     core.Route
	Reason    core.Reason    // why it was copied; "" if it was not
	Quirks    []core.QuirkID // those that took part
	Writable  bool           // as granted
	Version   uint64         // of the name, from 1, if the program published the array; else 0
	Published time.Time      // when it published that version; the zero Time if it did not
}

// Check proves that the parts of a lease fit each other and the request that it answers: the elements lie inside the
// memory of the handle; route, device, handle and fence go together; and nothing was granted that was not asked
// for. Everybody who takes a lease from another process checks it before using it. The error names what is wrong and
// has no category: the caller knows whose mistake it is.
func (l Lease) Check(req Request) error {
	switch lo, hi := l.Layout.Span(); {
	case !l.Layout.DType().Valid():
		return errors.New("no layout")
	case l.Handle == nil && l.Layout.Len() != 0:
		return fmt.Errorf("%d elements by route %v without memory", l.Layout.Len(), l.Route)
	case l.Handle == nil:
	case l.Layout.Len() == 0:
		return fmt.Errorf("no elements by route %v with memory", l.Route)
	case lo < 0 || int64(hi) > l.Handle.Extent():
		return fmt.Errorf("elements from byte %d to %d of memory of %d bytes", lo, hi, l.Handle.Extent())
	}
	if l.Version == 0 != l.Published.IsZero() {
		return fmt.Errorf("version %d, published at %v", l.Version, l.Published)
	}
	if err := l.checkPlace(); err != nil {
		return err
	}
	return l.checkGrant(req)
}

func (l Lease) checkPlace() error {
	fits := false
	switch l.Handle.(type) {
	case nil:
		fits = l.Route == RouteEmpty
	case Segment:
		fits = l.Route == RouteSharedHeap || l.Route == RouteMappedFile || l.Route == RouteStaged
	case CUDAIPC:
		fits = l.Route == RouteCUDAIPC || l.Route == RouteCUDAStaged
	case CUDAVMM:
		fits = l.Route == RouteCUDAVMM || l.Route == RouteCUDAStaged
	case CUDAPool:
		fits = l.Route == RouteCUDAPool
	}
	_, host := l.Handle.(Segment)
	_, ready := l.Fence.(Ready)
	device := l.Layout.Device()
	switch {
	case !fits:
		return fmt.Errorf("route %v with a handle of type %T", l.Route, l.Handle)
	case host && !device.HostReadable():
		return fmt.Errorf("a segment of host memory for an array on %v", device)
	case !host && l.Handle != nil && device.Kind != core.CUDA:
		return fmt.Errorf("GPU memory for an array on %v", device)
	case !ready && (host || l.Handle == nil):
		return fmt.Errorf("a fence of type %T for host memory", l.Fence)
	default:
		return nil
	}
}

func (l Lease) checkGrant(req Request) error {
	switch copied := Copied(l.Route); {
	case copied != (l.Reason != ""):
		return fmt.Errorf("route %v with reason %v", l.Route, l.Reason)
	case copied && req.Copy == CopyNever:
		return fmt.Errorf("a copy (%v) where copies were refused", l.Reason)
	case l.Writable != req.Writable:
		return fmt.Errorf("writable %v, where %v was asked for", l.Writable, req.Writable)
	case l.Writable && (l.Layout.ReadOnly() || copied):
		return errors.New("a read-only or copied array granted as writable")
	default:
		return nil
	}
}
