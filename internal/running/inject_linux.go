package running

import (
	"bufio"
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// From Python 3.14 on an interpreter runs a script that another process names to it (PEP 768). Whoever may write to its memory writes the
// script's path and a mark into the state of the main thread, and Python looks at the mark between two instructions. Where these are,
// the interpreter says itself, in a table at the begin of the section .PyRuntime. It does not change within 3.14.

// pointer is how many bytes an address has.
const pointer = 8

// Offsets into the table, which has words of 8 bytes.
const (
	tableVersion         = 8
	tableInterpreters    = 40  // in the runtime's state: the first interpreter
	tableMainThread      = 80  // in an interpreter: the main thread's state
	tableEvalBreaker     = 712 // in a thread's state: what makes it look
	tableSupport         = 720 // in a thread's state: where the next two lie
	tableEnabled         = 728 // in an interpreter: whether it is allowed
	tablePending         = 736
	tableScriptPath      = 744
	tableScriptPathSize  = 752
	tableSize            = 760
	maxScriptPath        = 512
	remoteDebugMinor     = 14
	remoteDebugRequired  = "Python 3.14"
	remoteDebugOffOption = "-X disable-remote-debug or PYTHON_DISABLE_REMOTE_DEBUG"
)

// look is the first byte of the words at tableEvalBreaker that makes the thread look at the script. The byte cannot be changed in one step
// from here: whatever the interpreter writes there between a read and a write would be lost. So nothing is read. Beside the mark itself (bit
// 5) it says that there may be signals, calls and an exception for the thread (1 to 3), which may just have come: the thread looks, and does
// nothing if there are none. Whoever wants the lock (0) or a collection (4) asks again; a thread that was asked for the lock, though nobody
// waits for it, would wait for somebody who takes it.
const look = 1<<5 | 1<<3 | 1<<2 | 1<<1

// mainThread is where the state of a Python process's main thread has what a script is asked for with.
type mainThread struct {
	memory                 memory
	pending, path, breaker uint64 // addresses
	main, state            uint64 // where the interpreter names its main thread while it runs code, and what was there
}

// examine finds the main thread of a Python process, or says why that cannot be asked to run a script.
func examine(pid int) (t *mainThread, err error) {
	m, err := openMemory(pid)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = m.Close() // nothing was written
		}
	}()
	base, err := findRuntime(pid)
	if err != nil {
		return nil, err
	}
	table := make([]byte, tableSize)
	if err := m.peek(base, table); err != nil {
		return nil, err
	}
	if err := checkTable(table); err != nil {
		return nil, err
	}
	at := func(offset int) uint64 { return binary.LittleEndian.Uint64(table[offset:]) }
	interpreter, err := m.peekWord(base + at(tableInterpreters))
	if err != nil {
		return nil, err
	}
	main := interpreter + at(tableMainThread)
	thread, err := m.peekWord(main)
	if err != nil {
		return nil, err
	}
	if interpreter == 0 || thread == 0 {
		return nil, notRunning()
	}
	enabled := make([]byte, 4) // which the interpreter knows by now
	if err := m.peek(interpreter+at(tableEnabled), enabled); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(enabled) != 1 {
		return nil, &core.Error{
			Kind: core.ErrConfig, Err: errors.New("the process does not allow it: " + remoteDebugOffOption),
			Remedy: "start it without that, or let it call ndbridge.listen()",
		}
	}
	support := thread + at(tableSupport)
	return &mainThread{m, support + at(tablePending), support + at(tableScriptPath), thread + at(tableEvalBreaker), main, thread}, nil
}

// run has the thread run a script.
func (t *mainThread) run(script string) error {
	if len(script) >= maxScriptPath {
		return fmt.Errorf("the path %s is too long for Python", script)
	}
	t.withdraw() // what nobody waits for any more: see outwait
	if err := t.memory.poke(t.path, append([]byte(script), 0)); err != nil {
		return err
	}
	if err := t.runs(); err != nil {
		return err
	}
	if err := t.memory.poke(t.pending, []byte{1, 0, 0, 0}); err != nil {
		return err
	}
	// One byte: the others say which tools watch its code.
	err := t.memory.poke(t.breaker, []byte{look})
	if err = cmp.Or(err, t.runs()); err != nil {
		t.withdraw()
	}
	return err
}

// again has the thread run a script that it has taken already.
func (t *mainThread) again(script string) error {
	if asked, err := t.asked(); err != nil || asked {
		return err
	}
	return t.run(script)
}

// asked reports whether there is a script that the thread has not run.
func (t *mainThread) asked() (bool, error) {
	pending := make([]byte, 4)
	err := cmp.Or(t.runs(), t.memory.peek(t.pending, pending))
	return err == nil && binary.LittleEndian.Uint32(pending) != 0, err
}

// runs holds that the thread is still its interpreter's main one. An interpreter that ends would run the script nevertheless, and say on
// standard error what it cannot do any more.
func (t *mainThread) runs() error {
	if now, err := t.memory.peekWord(t.main); err != nil || now != t.state {
		return cmp.Or(err, notRunning())
	}
	return nil
}

// withdraw takes the script back, if it has not been run.
func (t *mainThread) withdraw() { _ = t.memory.poke(t.pending, []byte{0, 0, 0, 0}) } // the process may be gone

// checkTable holds that the table is one of those that are known.
func checkTable(table []byte) error {
	if !bytes.HasPrefix(table, []byte("xdebugpy")) {
		return tooOld()
	}
	at := func(offset int) uint64 { return binary.LittleEndian.Uint64(table[offset:]) }
	major, minor := at(tableVersion)>>24&0xff, at(tableVersion)>>16&0xff
	switch {
	case major == 3 && minor < remoteDebugMinor:
		return tooOld()
	case at(16) != 0:
		return &core.Error{
			Kind: core.ErrVersion, Err: fmt.Errorf("the process runs the free-threaded Python %d.%d", major, minor), Remedy: "use the build with the GIL",
		}
	case major != 3 || minor != remoteDebugMinor || at(tableScriptPathSize) != maxScriptPath:
		return &core.Error{
			Kind: core.ErrVersion, Err: fmt.Errorf("the process runs Python %d.%d, of which it is not known how to ask it", major, minor),
			Remedy: "let the program call ndbridge.listen()",
		}
	}
	return nil
}

func tooOld() error {
	return &core.Error{
		Kind: core.ErrVersion, Err: errors.New("the process runs a Python older than 3.14, which cannot be asked to let a host in"),
		Remedy: "let the program call ndbridge.listen(), run it by ndbridge run --share, or use " + remoteDebugRequired,
	}
}

// findRuntime gives the address of the interpreter's state in a process.
func findRuntime(pid int) (uint64, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	maps, err := os.Open(dir + "/maps")
	if err != nil {
		return 0, notAllowed(pid, err)
	}
	defer maps.Close()                  //nolint:errcheck // only read from
	exe, _ := os.Readlink(dir + "/exe") // without one: ""
	seen, python := make(map[string]bool), false
	var gone error // a file that might have told
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		m, err := shm.ParseMapping(lines.Text())
		path := m.Path
		if err != nil || path == "" || seen[path] {
			continue
		}
		seen[path] = true
		named := strings.Contains(filepath.Base(path), "python")
		file := dir + "/root" + path
		if path == exe {
			file = dir + "/exe" // there it is even if another one has taken its place
		} else if !named {
			continue
		}
		python = python || named
		f, err := os.Open(file)
		if err != nil {
			gone = fmt.Errorf("the process runs %q, which cannot be read any more: %w", path, err)
			continue
		}
		address, ok := runtimeIn(f, uint64(m.Start))
		_ = f.Close() // only read from
		if ok {
			return address, nil
		}
	}
	now, _ := os.Readlink(dir + "/exe")
	switch {
	case now != exe || !seen[exe] || awaitsLibrary(dir+"/exe", seen): // it has just become this program, or has ended
		return 0, notRunning()
	case gone != nil:
		return 0, &core.Error{Kind: core.ErrUnavailable, Err: gone, Remedy: "start it again, or let it call ndbridge.listen()"}
	case python: // only newer ones have the section
		return 0, tooOld()
	default:
		return 0, &core.Error{Kind: core.ErrNotFound, Err: errors.New("the process runs no Python")}
	}
}

// awaitsLibrary reports whether a program is linked with an interpreter's library that is none of the mapped files yet.
func awaitsLibrary(exe string, mapped map[string]bool) bool {
	for path := range mapped {
		if isPythonLibrary(filepath.Base(path)) {
			return false
		}
	}
	f, err := elf.Open(exe)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read from
	return linksPython(f)
}

// runtimeIn gives the address of the state if it is that of the file whose first mapping is at start.
func runtimeIn(file io.ReaderAt, start uint64) (uint64, bool) {
	f, err := elf.NewFile(file)
	if err != nil {
		return 0, false
	}
	section := f.Section(pythonState)
	if section == nil {
		return 0, false
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			first := p.Vaddr
			if p.Align > 1 {
				first -= p.Vaddr % p.Align
			}
			return start + section.Addr - first, true
		}
	}
	return 0, false
}

// memory is that of the program which a process runs: if it becomes another one (exec), there is nothing at any address any more.
type memory struct{ *os.File }

func openMemory(pid int) (memory, error) {
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	return memory{f}, notAllowed(pid, err)
}

func (m memory) peek(address uint64, to []byte) error {
	if _, err := m.ReadAt(to, int64(address)); err != nil { //nolint:gosec // the kernel's own are above these
		return notRunning()
	}
	return nil
}

func (m memory) peekWord(address uint64) (uint64, error) {
	word := make([]byte, pointer)
	err := m.peek(address, word)
	return binary.LittleEndian.Uint64(word), err
}

func (m memory) poke(address uint64, from []byte) error {
	if _, err := m.WriteAt(from, int64(address)); err != nil { //nolint:gosec // likewise
		return notRunning()
	}
	return nil
}

// notAllowed says why this process may not look into another one.
func notAllowed(pid int, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrNotExist): // it has ended, or its first thread has
		return notRunning()
	case !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES):
		return &core.Error{Kind: core.ErrUnavailable, Err: fmt.Errorf("the memory of process %d: %w", pid, err)}
	}
	theirs, failed := credentialsOf(strconv.Itoa(pid))
	ours, own := credentialsOf("self")
	scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope") // without Yama: ""
	why, remedy := "", ""
	if failed == nil && own == nil {
		why, remedy = whyNoAccess(theirs, ours, strings.TrimSpace(string(scope)))
	}
	return &core.Error{
		Kind: core.ErrConfig, Err: fmt.Errorf("the kernel does not let this process look into that one%s", why),
		Remedy: "let the program call ndbridge.listen(), " + remedy + "or give the host CAP_SYS_PTRACE",
	}
}

// credentials are those by which the kernel decides who may look into a process.
type credentials struct {
	uids, gids [3]int // real, effective, saved
	permitted  uint64 // capabilities
}

func credentialsOf(process string) (c credentials, err error) {
	text, err := os.ReadFile("/proc/" + process + "/status")
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		var failed error
		switch name {
		case "Uid":
			_, failed = fmt.Sscan(value, &c.uids[0], &c.uids[1], &c.uids[2])
		case "Gid":
			_, failed = fmt.Sscan(value, &c.gids[0], &c.gids[1], &c.gids[2])
		case "CapPrm":
			c.permitted, failed = strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		}
		err = errors.Join(err, failed)
	}
	return c, err
}

// whyNoAccess says, as the kernel decides (ptrace(2), "Ptrace access mode checking"), why a process without CAP_SYS_PTRACE may not look into another
// one, and what else than that capability would help.
func whyNoAccess(theirs, ours credentials, scope string) (why, remedy string) {
	other := func(ids [3]int, own int) int { return slices.IndexFunc(ids[:], func(id int) bool { return id != own }) }
	user, group := other(theirs.uids, ours.uids[0]), other(theirs.gids, ours.gids[0])
	switch {
	case user >= 0:
		return fmt.Sprintf(": it runs as user %d, and this one as user %d", theirs.uids[user], ours.uids[0]), "run the host as the same user, "
	case group >= 0:
		return fmt.Sprintf(": it runs as group %d, and this one as group %d", theirs.gids[group], ours.gids[0]), "run the host as the same group, "
	case theirs.permitted&^ours.permitted != 0:
		return ": it has capabilities that this one has not", ""
	case scope != "" && scope != "0":
		return ": kernel.yama.ptrace_scope is " + scope, "set kernel.yama.ptrace_scope to 0, "
	default:
		return ": it is protected (PR_SET_DUMPABLE)", ""
	}
}
