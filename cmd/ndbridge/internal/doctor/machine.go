package doctor

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/shm"
	"github.com/ndbridge/ndbridge/internal/wire"
)

// machine examines what all programs share.
func (*doctor) machine() *Part {
	p := newPart("machine")
	p.Version = "ndbridge " + wire.Release + ", " + system()
	if file, err := shm.Create("ndbridge-doctor", 1<<16); err != nil {
		remedy := "check the limits on memory and open files"
		if e, ok := errors.AsType[*core.Error](err); ok {
			err, remedy = e.Err, e.Remedy
		}
		p.wrong(fmt.Sprintf("shared memory cannot be made: %v", err), remedy)
	} else {
		m, err := shm.Map(file, 1<<16, true)
		if err != nil {
			p.wrong(fmt.Sprintf("shared memory cannot be mapped: %v", err), "see ulimit -v, and the container's limit of memory")
		} else {
			_ = m.Close() // it was mapped
		}
		_ = file.Close() // nothing was written
	}
	if remedy := shm.HugePages(); remedy != "" {
		p.Notes = append(p.Notes, Problem{
			"shared memory has no huge pages: the first touch of large arrays is slower than it could be", "as root: " + remedy,
		})
	}
	return p
}

// system names the kernel.
func system() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return runtime.GOOS + "/" + runtime.GOARCH
	}
	return fmt.Sprintf("Linux %s, %s, %d processors", unix.ByteSliceToString(name.Release[:]), runtime.GOARCH, runtime.NumCPU())
}
