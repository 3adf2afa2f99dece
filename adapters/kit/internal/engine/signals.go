package engine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/internal/shm"
)

// signalsAge is how old what is known of the main thread's signals may be: to ask takes longer than a call.
const signalsAge = 50 * time.Millisecond

// mainSignals knows which signals the program's main thread blocks, as the threads do that it starts. The zero value is ready.
type mainSignals struct {
	mu   sync.Mutex
	at   time.Time
	mask *uint64
}

// blocked gives a bit for each signal from 1 on, or nil if that is not known.
func (m *mainSignals) blocked() *uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.at) > signalsAge {
		m.at, m.mask = now, readBlocked()
	}
	return m.mask
}

// forget has the main thread looked at again before the next call.
func (m *mainSignals) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = time.Time{}
}

func readBlocked() *uint64 {
	status, err := shm.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", os.Getpid()))
	if err != nil {
		return nil
	}
	_, after, _ := strings.Cut(string(status), "\nSigBlk:")
	line, _, _ := strings.Cut(after, "\n")
	mask, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	if err != nil {
		return nil
	}
	return &mask
}
