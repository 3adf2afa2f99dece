// Package running finds the programs of this user that let hosts come to them: each has a socket in the user's runtime directory,
// NAME.PID, or where it was told to make it.
package running

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/prose"
)

// Program is a program that listens.
type Program struct {
	Name string
	PID  int
	Path string // of the socket
}

// Connected is a connection to the socket of a program.
type Connected struct {
	Program

	Side *fdpass.Conn // the caller's
}

// directories lists where programs make their sockets: see _runtime_directory in the module ndbridge.
func directories() []string {
	user := strconv.Itoa(os.Geteuid())
	var dirs []string
	if run := os.Getenv("XDG_RUNTIME_DIR"); run != "" {
		dirs = append(dirs, filepath.Join(run, "ndbridge"))
	}
	return append(dirs, filepath.Join("/run/user", user, "ndbridge"), "/tmp/ndbridge-"+user)
}

// Directory gives the first of them that is this user's alone, which it makes if need be.
func Directory() (string, error) {
	var problems []error
	for _, dir := range directories() {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			problems = append(problems, err)
			continue
		}
		info, err := os.Lstat(dir)
		if err == nil && info.IsDir() && ours(info) {
			return dir, nil
		}
		problems = append(problems, cmp.Or(err, fmt.Errorf("%s is not a directory of this user alone (mode 0700)", dir)))
	}
	return "", &core.Error{
		Op: "run", Kind: core.ErrConfig, Err: fmt.Errorf("programs cannot make their sockets anywhere: %w", errors.Join(problems...)),
		Remedy: "set XDG_RUNTIME_DIR to a directory of this user",
	}
}

// HeapLibrary is the shared heap's file, which programs get by LD_PRELOAD.
const HeapLibrary = "libndbridge-heap.so"

// WithoutHeap takes the shared heap out of a list as LD_PRELOAD has it: a process can have one.
func WithoutHeap(preload string) string {
	entries := strings.FieldsFunc(preload, func(r rune) bool { return r == ':' || r == ' ' })
	return strings.Join(slices.DeleteFunc(entries, func(e string) bool { return filepath.Base(e) == HeapLibrary }), ":")
}

// List lists the sockets in the user's runtime directory, by name and process. Some may be of programs that are gone.
func List() []Program {
	var all []Program
	for _, dir := range directories() {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || !ours(info) {
			continue
		}
		entries, _ := os.ReadDir(dir) // what can be read is listed
		for _, e := range entries {
			name, pid := parse(e.Name())
			p := Program{Name: name, PID: pid, Path: filepath.Join(dir, e.Name())}
			if pid != 0 && e.Type() == fs.ModeSocket && !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, func(a, b Program) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return a.PID - b.PID
	})
	return all
}

// ours reports whether a directory is this user's alone.
func ours(info fs.FileInfo) bool {
	uid, ok := ownerOf(info)
	return ok && uid == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}

// parse reads the name of a socket. The process is 0 if it is not one of ours.
func parse(file string) (name string, pid int) {
	at := strings.LastIndexByte(file, '.')
	if at <= 0 {
		return file, 0
	}
	pid, err := strconv.Atoi(file[at+1:])
	if err != nil || pid <= 0 {
		return file, 0
	}
	return file[:at], pid
}

// Dial connects to the program that listens at a path.
func Dial(ctx context.Context, path string) (Connected, error) {
	name, _ := parse(filepath.Base(path))
	side, peer, err := fdpass.Dial(ctx, path)
	if err != nil {
		return Connected{}, whyNot(name, path, err)
	}
	if me := os.Geteuid(); peer.UID != me && me != 0 {
		return Connected{}, errors.Join(&core.Error{
			Op: "attach", Program: name, Kind: core.ErrConfig,
			Err:    fmt.Errorf("the program at %s is that of user %d, and this host runs as user %d", path, peer.UID, me),
			Remedy: "run both as one user",
		}, side.Close())
	}
	return Connected{Program{name, peer.PID, path}, side}, nil
}

func whyNot(name, path string, err error) error {
	e := &core.Error{Op: "attach", Program: name, Kind: core.ErrUnavailable, Err: fmt.Errorf("%s: %w", path, err)}
	errno, _ := errors.AsType[syscall.Errno](err)
	switch errno { //nolint:exhaustive // the others say enough
	case syscall.ENOENT, syscall.ENOTDIR, syscall.EINVAL: // the last is of an empty path
		e.Kind, e.Err = core.ErrNotFound, fmt.Errorf("there is no socket at %s", path)
		e.Remedy = "let the program call ndbridge.listen(path=...) with this path, and see whether it runs; " + begins
	case syscall.ECONNREFUSED:
		e.Err = fmt.Errorf("the program at %s has ended: %w", path, errno)
		e.Remedy = "start it again"
	case syscall.EACCES, syscall.EPERM:
		e.Kind, e.Err = core.ErrConfig, fmt.Errorf("this user may not use %s", path)
		e.Remedy = "run host and program as one user"
	case syscall.EPROTOTYPE, syscall.ENOTSOCK:
		e.Kind, e.Err = core.ErrConfig, fmt.Errorf("%s is not the socket of a program that listens", path)
	}
	return e
}

// Find connects to the one program of that name.
func Find(ctx context.Context, name string) (Connected, error) {
	c, err := find(ctx, name, func(p Program) bool { return p.Name == name })
	if c.Side == nil && err == nil {
		err = missing(name)
	}
	return c, err
}

// startWait bounds the wait for a process whose interpreter starts, and startPause is how long it is until the next look.
const startWait, startPause = 5 * time.Second, 10 * time.Millisecond

// errNotRunning says that a process has an interpreter, which has no main thread now that could be asked.
var errNotRunning = errors.New("the interpreter is starting or ending, or is embedded in a program")

func notRunning() error {
	return &core.Error{Kind: core.ErrUnavailable, Err: errNotRunning, Remedy: "try again, or let the program call ndbridge.listen()"}
}

// FindProcess connects to the program that is a process. One that does not listen is asked to come, which Python 3.14 can be, by
// a script that code makes for the socket at which it is awaited. An interpreter that starts is waited for, also where a program becomes
// another one (exec), and so is a program that is about to listen.
func FindProcess(ctx context.Context, pid int, code func(socket string) []byte) (Connected, error) {
	for end := time.Now().Add(startWait); ; {
		c, err := findProcess(ctx, pid, code)
		e, _ := errors.AsType[*core.Error](err)
		soon := errors.Is(err, errNotRunning) || errors.Is(err, core.ErrVersion) && toListen(pid)
		if !soon || time.Now().After(end) {
			return c, err
		}
		select {
		case <-time.After(startPause):
		case <-ctx.Done():
			return Connected{}, &core.Error{Op: "attach", Program: strconv.Itoa(pid), Kind: ctx.Err(), Err: e.Err, Remedy: e.Remedy}
		}
	}
}

// toListen reports whether a program runs below "ndbridge run --share", where it listens soon after its start.
func toListen(pid int) bool {
	environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // without one, nobody has told it to
	return bytes.Contains(environment, []byte("NDBRIDGE_HEAP_LISTEN=")) && !bytes.Contains(environment, []byte("NDBRIDGE_HEAP_HOST="))
}

func findProcess(ctx context.Context, pid int, code func(socket string) []byte) (Connected, error) {
	label := strconv.Itoa(pid)
	c, err := find(ctx, label, func(p Program) bool { return p.PID == pid })
	if c.Side != nil || err != nil {
		return c, err
	}
	if err := silent(label, pid); err != nil {
		return Connected{}, err
	}
	side, err := ask(ctx, pid, code)
	if e, ok := errors.AsType[*core.Error](err); ok {
		about := *e
		about.Op, about.Program = "attach", label
		return Connected{}, &about
	}
	if err != nil {
		kind := core.ErrUnavailable
		if ctx.Err() != nil {
			kind = ctx.Err()
		}
		return Connected{}, &core.Error{Op: "attach", Program: label, Kind: kind, Err: err}
	}
	return Connected{Program{Name: label, PID: pid}, side}, nil
}

// find connects to the one program that is wanted; the side socket is nil if there is none. Of several, it is the one that has started the
// others: a program's children have its name.
func find(ctx context.Context, label string, wanted func(p Program) bool) (Connected, error) {
	all := slices.DeleteFunc(List(), func(p Program) bool { return !wanted(p) })
	here := live(slices.Clone(all))
	var found []Connected
	for _, p := range all {
		if slices.Contains(here, p) || !bound(p.Path) {
			continue
		}
		if c, err := Dial(ctx, p.Path); err == nil { // in another container
			found = append(found, c)
		}
	}
	if first, ok := ancestor(here); ok && len(found) == 0 {
		here = []Program{first}
	}
	if len(found)+len(here) > 1 { // no program notices that it is not the one
		var paths []string
		for _, c := range found {
			paths = append(paths, c.Path)
		}
		for _, p := range here {
			paths = append(paths, p.Path)
		}
		return Connected{}, errors.Join(&core.Error{
			Op: "attach", Program: label, Kind: core.ErrConfig,
			Err:    fmt.Errorf("%d programs are called so: %s", len(paths), strings.Join(paths, ", ")),
			Remedy: "name the process or the socket of one of them",
		}, closeAll(found))
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(here) == 0 {
		return Connected{}, nil
	}
	c, err := Dial(ctx, here[0].Path)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return Connected{}, nil // it is about to listen, or has just ended
	}
	return c, err
}

// begins says what helps where a host comes before a program listens.
const begins = "if it has only just begun, wait for it (Target.Await, --wait)"

func missing(name string) error {
	var names []string
	for _, p := range List() {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return &core.Error{
		Op: "attach", Program: name, Kind: core.ErrNotFound, Err: errors.New("no program of this user listens under this name"),
		Remedy: prose.Remedy(name, slices.Values(names), `let the program call ndbridge.listen("`+name+`"), or run it by ndbridge run --share; `+begins),
	}
}

// silent says why a process that does not listen cannot be asked to come.
func silent(label string, pid int) error {
	e := &core.Error{Op: "attach", Program: label, Kind: core.ErrNotFound, Err: errors.New("there is no such process")}
	if pid <= 0 || !Alive(pid) {
		return e
	}
	if why := Why(pid); why != "" {
		e.Err = errors.New(why)
		return e
	}
	return nil
}

// Alive reports whether a process is there, and has not ended: its first thread may have, as while another one makes it another program (exec).
func Alive(pid int) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	threads, _ := os.ReadDir(dir + "/task") // of a process that has gone: none
	stat, err := os.ReadFile(dir + "/stat")
	return err == nil && (len(threads) > 1 || !strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " Z"))
}

// Why says what keeps hosts from a process whatever it does: it is another user's, or no Python. It is "" if nothing does, or there is no
// such process.
func Why(pid int) string {
	dir := "/proc/" + strconv.Itoa(pid)
	info, err := os.Stat(dir)
	if err != nil {
		return ""
	}
	if uid, ok := ownerOf(info); ok && uid != os.Geteuid() && os.Geteuid() != 0 {
		return fmt.Sprintf("the process belongs to user %d", uid)
	}
	maps, err := os.ReadFile(dir + "/maps")
	if err == nil && len(maps) != 0 && !strings.Contains(string(maps), "python") && !isInterpreter(dir+"/exe") { // without any it is ending
		return "the process runs no Python"
	}
	return ""
}

// isInterpreter reports whether a program has a Python interpreter in it, by its library or by its state, which newer ones (3.10 at least)
// have.
func isInterpreter(file string) bool {
	f, err := elf.Open(file)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read from
	return f.Section(pythonState) != nil || linksPython(f)
}

// linksPython reports whether a program is linked with the library of an interpreter.
func linksPython(f *elf.File) bool {
	libraries, _ := f.ImportedLibraries() // of one that is linked with none: none
	return slices.ContainsFunc(libraries, isPythonLibrary)
}

func isPythonLibrary(file string) bool { return strings.HasPrefix(file, "libpython") }

// pythonState is the section of a program or library that has an interpreter's state.
const pythonState = ".PyRuntime"

func closeAll(all []Connected) error {
	var errs []error
	for _, c := range all {
		errs = append(errs, c.Side.Close())
	}
	return errors.Join(errs...)
}
