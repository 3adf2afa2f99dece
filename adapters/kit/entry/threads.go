package entry

import (
	"runtime"
	"sync"
)

const (
	// spareThreads is how many threads Go has besides those that it has come to need: where the process may have no more, it waits for
	// one, and all that is Go's with it, Python's lock perhaps. On a busy machine it needs more, since it gives the processor of a thread that waits
	// in the kernel to another one: four were too few in one of forty runs of TestAttachWithoutThreads.
	spareThreads = 12

	// roomForThreads is how many more there must be for one that enters Python: that one, and another in its place.
	roomForThreads = 2
)

// spare makes spareThreads, which sleep until Go needs them: a goroutine that has a thread to itself makes another one run the others.
func spare() {
	var there sync.WaitGroup
	all := make(chan struct{})
	for range spareThreads {
		there.Add(1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			there.Done()
			<-all
		}()
	}
	go func() {
		there.Wait()
		close(all)
	}()
}
