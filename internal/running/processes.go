package running

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

// Live lists the programs that listen now, by name and process, and removes what others have left.
func Live() []Program { return live(List()) }

// live leaves out those whose process has gone, or is another program by now, and removes the sockets of the former.
func live(all []Program) []Program {
	return slices.DeleteFunc(all, func(p Program) bool {
		here := Alive(p.PID)
		there := bound(p.Path)
		if !here && !there {
			_ = os.Remove(p.Path) // somebody else may have done it
		}
		return !here || !there
	})
}

// Process is one that runs Python.
type Process struct {
	PID    int
	Parent int    // the nearest one of these that it comes from, or 0
	Name   string // under which it listens, or ""
	Socket string // where
	Err    error  // why no host can attach to it, or nil
}

// Processes lists the processes that listen, by name, and then the others that are seen to be Pythons.
func Processes() []Process {
	var all []Process
	parents := processes()
	listed := make(map[int]bool)
	for _, p := range Live() {
		if !listed[p.PID] {
			all = append(all, Process{PID: p.PID, Name: p.Name, Socket: p.Path})
		}
		listed[p.PID] = true
	}
	for _, pid := range slices.Sorted(maps.Keys(parents)) {
		if !listed[pid] && isPython(pid) {
			all = append(all, Process{PID: pid, Err: silence(pid)})
			listed[pid] = true
		}
	}
	for i, p := range all {
		all[i].Parent = climb(parents, parents[p.PID], func(pid int) bool { return listed[pid] })
	}
	return all
}

// Below lists those that come from a process, directly or not.
func Below(pid int) []Process {
	parents := processes()
	return slices.DeleteFunc(Processes(), func(p Process) bool { return p.PID == pid || !below(parents, p.PID, pid) })
}

// silence says why no host can attach to a process that does not listen.
func silence(pid int) error {
	if why := Why(pid); why != "" {
		return &core.Error{Kind: core.ErrNotFound, Err: errors.New(why)}
	}
	err := Askable(pid)
	if e, ok := errors.AsType[*core.Error](err); ok {
		about := *e
		about.Err = fmt.Errorf("does not listen, and %w", cmp.Or(e.Err, e.Kind))
		return &about
	}
	return err
}

// isPython reports whether a process is an interpreter, by its executable or, of another user, by how it was called.
func isPython(pid int) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	exe, err := os.Readlink(dir + "/exe")
	if err != nil {
		line, _ := os.ReadFile(dir + "/cmdline") // empty for a thread of the kernel's
		exe, _, _ = strings.Cut(string(line), "\x00")
	}
	return strings.HasPrefix(filepath.Base(exe), "python")
}

// ancestor gives the program that has started all others, if there is one.
func ancestor(all []Program) (Program, bool) {
	parents := processes()
	all = slices.DeleteFunc(slices.Clone(all), func(p Program) bool { // it has ended since it was found
		_, there := parents[p.PID]
		return !there
	})
	for _, p := range all {
		if !slices.ContainsFunc(all, func(q Program) bool { return !below(parents, q.PID, p.PID) }) {
			return p, true
		}
	}
	return Program{}, false
}

// processes gives the parent of each process that can be seen.
func processes() map[int]int {
	entries, _ := os.ReadDir("/proc") // what can be read is listed
	parents := make(map[int]int)
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if parent, ok := parentOf(pid); ok {
				parents[pid] = parent
			}
		}
	}
	return parents
}

func parentOf(pid int) (parent int, ok bool) {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat") // of one that has ended it is empty
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest) // the state, and then the parent
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(fields[1])
	return parent, err == nil
}

// below reports whether a process is another one, or comes from it.
func below(parents map[int]int, pid, from int) bool {
	return climb(parents, pid, func(pid int) bool { return pid == from }) == from
}

// climb gives the first process from pid upwards that is wanted, or 0.
func climb(parents map[int]int, pid int, wanted func(pid int) bool) int {
	for range parents { // which were not all seen at one moment: they may form a circle
		if pid == 0 || wanted(pid) {
			return pid
		}
		pid = parents[pid]
	}
	return 0
}
