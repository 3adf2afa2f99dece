package hostplugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap"
	"github.com/ndbridge/ndbridge/hostplugin/internal/checksum"
	"github.com/ndbridge/ndbridge/hostplugin/internal/environ"
	"github.com/ndbridge/ndbridge/hostplugin/internal/process"
	"github.com/ndbridge/ndbridge/hostplugin/internal/shipped"
	"github.com/ndbridge/ndbridge/internal/suggest"
)

// heapLibrary is the shared heap's file, which lies beside the plugins.
const heapLibrary = "libndbridge-heap.so"

// heapFD is the descriptor that the heap library is passed as if its path has characters that
// LD_PRELOAD cannot hold. The numbers before it are the process model's.
const heapFD = 5

// launch is a program ready to be started: everything found and checked.
type launch struct {
	program Program
	path    string   // what is executed
	argv    []string // with argv[0]
	dir     string
	env     []string
	plugin  string // the plugin's file
	heap    string // the heap library's file, or "" for none
	heapOff string // why there is no shared heap, if there is none but could be
}

// prepare finds what a program needs. Every error is the user's to mend, and says how.
func (h *Host) prepare(p *Program) (*launch, error) {
	l := &launch{program: p.clone()}
	if err := l.findDir(); err != nil {
		return nil, err
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
		if err := l.findScript(); err != nil {
			return nil, err
		}
	}
	l.argv = append([]string{l.path}, bootstrap.Args(l.plugin, kind, target, p.Args...)...)
	l.findHeap()
	return l, nil
}

func (l *launch) fail(remedy, format string, args ...any) error {
	return &core.Error{
		Op: "start", Program: l.program.Name, Kind: core.ErrConfig,
		Err: fmt.Errorf(format, args...), Remedy: remedy,
	}
}

func (l *launch) findDir() error {
	if l.program.Dir == "" {
		return nil
	}
	l.dir = l.program.Dir
	info, err := os.Stat(l.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l.fail("correct dir", "the working directory %s does not exist", l.dir)
	case err != nil:
		return l.fail("correct dir", "the working directory cannot be used: %w", err)
	case !info.IsDir():
		return l.fail("correct dir", "the working directory %s is not a directory", l.dir)
	}
	return nil
}

// LibDirs lists the directories in which plugins are looked up by name, in order.
func (h *Host) LibDirs() []string {
	dirs := slices.Clone(h.opts.libDirs)
	if dir := os.Getenv("NDBRIDGE_LIB"); dir != "" {
		dirs = append(dirs, dir)
	}
	if exe, err := os.Executable(); err == nil {
		dir := filepath.Dir(exe)
		dirs = append(dirs, filepath.Join(dir, "lib"), filepath.Join(dir, "..", "lib", "ndbridge"))
	}
	return dirs
}

func (l *launch) findPlugin(dirs []string) error {
	name := l.program.plugin()
	if strings.Contains(name, "/") {
		info, err := os.Stat(name)
		switch {
		case err != nil:
			return l.fail("correct plugin, or build it", "the plugin %s cannot be used: %w", name, unwrapPath(err))
		case info.IsDir():
			return l.fail("correct plugin", "the plugin %s is a directory", name)
		}
		l.plugin = name
	} else if err := l.lookUpPlugin(name, dirs); err != nil {
		return err
	}
	if !l.program.python() {
		if err := process.Executable(l.plugin); err != nil {
			return l.fail("set script or module if it is for a Python program", "the plugin %w", err)
		}
	}
	if l.program.Checksum == "" {
		return nil
	}
	if err := checksum.Verify(l.plugin, l.program.Checksum); err != nil {
		return l.fail("correct checksum, or find out who changed the file", "the plugin %s: %w", l.plugin, err)
	}
	return nil
}

// lookUpPlugin finds ndbridge-NAME.so, or for an ordinary executable ndbridge-NAME.
func (l *launch) lookUpPlugin(name string, dirs []string) error {
	suffix := ""
	if l.program.python() {
		suffix = ".so"
	}
	file, present := shipped.Find(name, suffix, dirs)
	if file != "" {
		var err error
		l.plugin, err = filepath.Abs(file)
		return err
	}
	remedy := suggest.Remedy(name, slices.Values(present),
		"set NDBRIDGE_LIB to the directory that holds it, or plugin to its path")
	return l.fail(remedy, "the plugin %q (ndbridge-%s%s) is not in %s", name, name, suffix, strings.Join(dirs, ", "))
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
		return l.fail("set python to the interpreter's path", "the interpreter cannot be used: %w", err)
	}
	l.path = found
	return nil
}

func (l *launch) findScript() error {
	script := l.program.Script
	info, err := os.Stat(script)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		var scripts []string
		if files, err := filepath.Glob(filepath.Join(filepath.Dir(script), "*.py")); err == nil {
			for _, f := range files {
				scripts = append(scripts, filepath.Base(f))
			}
		}
		return l.fail(suggest.Remedy(filepath.Base(script), slices.Values(scripts), "set script to a file that exists"),
			"the script %s does not exist", script)
	case err != nil:
		return l.fail("set script to a file that can be read", "the script cannot be used: %w", err)
	case info.IsDir():
		if _, err := os.Stat(filepath.Join(script, "__main__.py")); err != nil {
			return l.fail("name a file in it, or set module instead",
				"the script %s is a directory without a __main__.py", script)
		}
	}
	return nil
}

// findHeap decides whether the program gets the shared heap. Without it everything works, with
// copies.
func (l *launch) findHeap() {
	if !l.program.sharedHeap() {
		l.heapOff = "shared_heap = false"
		return
	}
	file := filepath.Join(filepath.Dir(l.plugin), heapLibrary)
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
	if old := environ.Lookup(l.env, "LD_PRELOAD"); old != "" {
		set["LD_PRELOAD"] += ":" + old
	}
	if n := l.program.SharedHeapThreshold; n != 0 {
		set["NDBRIDGE_HEAP_THRESHOLD"] = strconv.FormatInt(n, 10)
	}
	if libs := l.program.SharedHeapLibraries; libs != nil {
		set["NDBRIDGE_HEAP_LIBRARIES"] = strings.Join(libs, ",")
	}
	l.env = environ.Merge(l.env, set)
}

// environment gives the program's environment: the host's, without what a plugin that started this
// host may have left in it, and the program's own on top.
func (l *launch) environment(host []string) []string {
	env := slices.DeleteFunc(slices.Clone(host), func(v string) bool {
		return strings.HasPrefix(v, "PLUGIN_") || strings.HasPrefix(v, "NDBRIDGE_HEAP_")
	})
	return environ.Merge(env, l.program.Env)
}
