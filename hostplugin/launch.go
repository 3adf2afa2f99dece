package hostplugin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap"
	"github.com/ndbridge/ndbridge/hostplugin/internal/process"
	"github.com/ndbridge/ndbridge/internal/native"
	"github.com/ndbridge/ndbridge/internal/running"
)

// heapFD is the descriptor that the heap library is passed as if its path has characters that
// LD_PRELOAD cannot hold. The numbers before it are the process model's.
const heapFD = 5

// launch is a program ready to be started: everything found and checked.
type launch struct {
	program Program
	op      string   // what is done: "start" or "attach"
	path    string   // what is executed
	argv    []string // with argv[0]
	env     []string
	plugin  string // the plugin's file
	heap    string // the heap library's file, or "" for none
	heapOff string // why there is no shared heap, if there is none but could be
}

// prepare finds what a program needs. Every error is the user's to mend, and says how.
func (h *Host) prepare(p *Program) (*launch, error) {
	l := &launch{program: p.clone(), op: "start"}
	if err := checkSystem(); err != nil {
		return nil, l.about(err)
	}
	if err := process.CheckDir(p.Dir); err != nil {
		return nil, l.about(err)
	}
	if err := l.findPlugin(h.LibDirs()); err != nil {
		return nil, err
	}
	l.env = l.environment(os.Environ())
	if !p.python() {
		l.path = l.plugin
		l.argv = append([]string{l.plugin}, p.Args...)
		return l, nil
	}
	if err := l.findPython(); err != nil {
		return nil, err
	}
	kind, target := bootstrap.Module, p.Module
	if p.Script != "" {
		kind, target = bootstrap.Script, p.Script
		if err := process.CheckScript(p.Script); err != nil {
			return nil, l.about(err)
		}
	}
	l.argv = append([]string{l.path}, bootstrap.Args(l.plugin, kind, target, p.Args...)...)
	l.findHeap()
	return l, nil
}

// ends says what the host can end: a program to which it has attached goes on.
func (l *launch) ends() string {
	if l.op == "attach" {
		return "the session"
	}
	return "the program"
}

// about makes an error of package process one of this program's start.
func (l *launch) about(err error) error {
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		return l.fail("", "%w", err)
	}
	about := *e
	about.Op, about.Program = l.op, l.program.Name
	return &about
}

func (l *launch) fail(remedy, format string, args ...any) error {
	return &core.Error{
		Op: l.op, Program: l.program.Name, Kind: core.ErrConfig,
		Err: fmt.Errorf(format, args...), Remedy: remedy,
	}
}

// LibDirs lists the directories in which plugins are looked up by name, in order, each once. If none of them has the plugin
// "all", the host takes the one that its executable embeds.
func (h *Host) LibDirs() []string {
	all := append(slices.Clone(h.cfg.LibDirs), os.Getenv("NDBRIDGE_LIB"))
	if exe, err := os.Executable(); err == nil {
		dir := filepath.Dir(exe)
		all = append(all, filepath.Join(dir, "lib"), filepath.Join(dir, "..", "lib", "ndbridge"))
	}
	var dirs []string
	for _, dir := range all {
		if dir != "" && !slices.Contains(dirs, filepath.Clean(dir)) {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	return dirs
}

func (l *launch) findPlugin(dirs []string) error {
	plugin, err := process.FindPlugin(l.program.plugin(), l.program.python(), dirs)
	if err != nil && l.program.python() && l.program.plugin() == native.Plugin {
		plugin, err = embeddedPlugin(err)
	}
	if err != nil {
		return l.about(err)
	}
	l.plugin = plugin
	if !l.program.python() {
		if err := process.Executable(l.plugin); err != nil {
			return l.fail("set script or module if it is for a Python program", "the plugin %w", err)
		}
	}
	if l.program.Checksum == "" {
		return nil
	}
	if err := process.VerifyChecksum(l.plugin, l.program.Checksum); err != nil {
		return l.fail("correct checksum, or find out who changed the file", "the plugin %s: %w", l.plugin, err)
	}
	return nil
}

// embeddedPlugin gives the file of the plugin that this executable embeds, after notFound: there is none in any directory.
func embeddedPlugin(notFound error) (string, error) {
	dir, err := native.Dir()
	if errors.Is(err, native.ErrNone) {
		if e, ok := errors.AsType[*core.Error](notFound); ok {
			return "", &core.Error{Kind: e.Kind, Err: fmt.Errorf("%w, and %w", e.Err, err), Remedy: e.Remedy}
		}
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "ndbridge-"+native.Plugin+".so"), nil
}

func (l *launch) findPython() error {
	name := l.program.Python
	if name == "" {
		name = defaultPython
	}
	path := os.Getenv("PATH")
	if p, ok := l.program.Env["PATH"]; ok {
		path = p
	}
	found, err := process.LookPath(name, path)
	if err != nil {
		remedy := "set python to the interpreter's path"
		if inside := filepath.Join(name, "bin", "python"); process.Executable(inside) == nil { // of a virtual environment
			remedy = "did you mean " + inside + "?"
		}
		return l.fail(remedy, "the interpreter cannot be used: %w", err)
	}
	l.path = found
	return nil
}

// findHeap decides whether the program gets the shared heap. Without it everything works, with
// copies.
func (l *launch) findHeap() {
	if l.program.SharedHeap.Off {
		l.heapOff = "shared_heap = false"
		return
	}
	file := filepath.Join(filepath.Dir(l.plugin), running.HeapLibrary)
	if _, err := os.Stat(file); err != nil {
		l.heapOff = fmt.Sprintf("%s cannot be used: %v", file, unwrapPath(err))
		return
	}
	if err := process.Preloadable(l.path); err != nil {
		l.heapOff = err.Error()
		return
	}
	l.heap = file
	preload := file
	if strings.ContainsAny(file, ": \t\n$") { // separators, and what the loader would expand
		preload = "/proc/self/fd/" + strconv.Itoa(heapFD)
	}
	set := map[string]string{"LD_PRELOAD": preload}
	if directory, err := running.Directory(); err == nil { // else hosts cannot come to its children
		set["NDBRIDGE_HEAP_LISTEN"], set["NDBRIDGE_HEAP_HOST"], set["NDBRIDGE_HEAP_NAME"] = directory, "1", l.program.Name
	}
	if old := process.Getenv(l.env, "LD_PRELOAD"); old != "" {
		set["LD_PRELOAD"] += ":" + old
	}
	if n := l.program.SharedHeap.Threshold; n != 0 {
		set["NDBRIDGE_HEAP_THRESHOLD"] = strconv.FormatInt(n, 10)
	}
	if libs := l.program.SharedHeap.Libraries; libs != nil {
		set["NDBRIDGE_HEAP_LIBRARIES"] = strings.Join(libs, ",")
	}
	if how := l.program.SharedHeap.Promote; how != "" {
		set["NDBRIDGE_HEAP_PROMOTE"] = how
	}
	l.env = process.Setenv(l.env, set)
}

// environment gives the program's environment: the host's, without what a plugin that started this
// host may have left in it, and the program's own on top.
func (l *launch) environment(host []string) []string {
	env := slices.DeleteFunc(slices.Clone(host), func(v string) bool {
		return strings.HasPrefix(v, "PLUGIN_") || strings.HasPrefix(v, "NDBRIDGE_HEAP_")
	})
	if preload := process.Getenv(env, "LD_PRELOAD"); preload != "" {
		env = process.Setenv(env, map[string]string{"LD_PRELOAD": running.WithoutHeap(preload)})
	}
	return process.Setenv(env, l.program.Env)
}
