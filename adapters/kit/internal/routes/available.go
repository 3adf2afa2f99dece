package routes

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// largeCopy is from where on a copy asks whether there is memory for it. Asking takes about 50 us.
const largeCopy = 64 << 20

// checkRoom refuses a copy for which there is no memory. The kernel gives pages of a memfd as they are written,
// and ends some process when none are left, most often another one than this: an array may be far larger than the
// memory it takes, as a mapping of a sparse file is, and its copy is not.
func checkRoom(size int64) error {
	if size < largeCopy {
		return nil
	}
	free := available("/")
	if size <= free {
		return nil
	}
	return &core.Error{
		Op: "stage", Kind: core.ErrUnsupported,
		Err:    fmt.Errorf("it can only be copied, and of the %d bytes that this needs %d are available", size, free),
		Remedy: "look at a part of the array, or give the program memory that can be shared",
	}
}

// room is the memory that promotions may take. Its method is safe for concurrent use.
type room struct {
	left  func() int64
	taken atomic.Int64 // since that was asked
}

var forPromotion = room{left: func() int64 { return available("/") }} //nolint:gochecknoglobals // a process has one memory

// take reports whether there is memory for a promotion of so many bytes; several says that the heap may promote small blocks besides, of largeCopy
// together. The old pages may stay, as those of a child, so many promotions of small arrays may take as much as one of a large array. So much is
// left as may be promoted until memory is asked about again.
func (r *room) take(size int64, several bool) bool {
	if several {
		size += largeCopy
	}
	if r.taken.Add(size) < largeCopy {
		return true
	}
	if size+largeCopy > r.left() {
		return false // whoever is next asks again
	}
	r.taken.Store(0)
	return true
}

// available gives how many bytes of memory this process can get before the kernel has to end one: of the machine,
// and of each control group that it is in, whose limits count what can be dropped again as used.
func available(root string) int64 {
	free := int64(math.MaxInt64)
	if kib, ok := field(filepath.Join(root, "proc/meminfo"), "MemAvailable:"); ok {
		free = kib << 10
	}
	groups, err := shm.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return free // a kernel without control groups
	}
	for line := range strings.Lines(string(groups)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) < 3 {
			continue
		}
		switch part[1] {
		case "":
			free = min(free, ofGroups(filepath.Join(root, "sys/fs/cgroup"), part[2], "memory.max", "memory.current", "file", "shmem"))
		case "memory":
			free = min(free, ofGroups(filepath.Join(root, "sys/fs/cgroup/memory"), part[2],
				"memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache", "total_shmem"))
		}
	}
	return free
}

// ofGroups gives what a group and those above it leave, by the names that a version of control groups has for the
// limit, for what is used, and for that part of it which is of files and which of shared memory.
func ofGroups(root, group, limit, used, files, shared string) int64 {
	free := int64(math.MaxInt64)
	for dir := filepath.Join(root, group); ; dir = filepath.Dir(dir) {
		bound, err := number(filepath.Join(dir, limit))
		now, err2 := number(filepath.Join(dir, used))
		if errors.Join(err, err2) == nil { // else there is no limit here, or the group is another namespace's
			stat := filepath.Join(dir, "memory.stat")
			cache, _ := field(stat, files)
			kept, _ := field(stat, shared)
			free = min(free, max(bound-now+max(cache-kept, 0), 0))
		}
		if len(dir) <= len(root) {
			return free
		}
	}
}

// number reads a file that holds one number; "max", as of no limit, is an error.
func number(path string) (int64, error) {
	text, err := shm.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// field reads the number that follows a name in a file of such lines.
func field(path, name string) (int64, bool) {
	text, err := shm.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) >= 2 && words[0] == name {
			n, err := strconv.ParseInt(words[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
