package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/running"
)

// pythonProcess is one line of "ndbridge ps".
type pythonProcess struct {
	PID    int    `json:"pid"`
	Name   string `json:"name,omitempty"`   // under which it listens
	Socket string `json:"socket,omitempty"` // where
	Reason string `json:"reason,omitempty"` // why no host can attach
}

func newPs(env *environ) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the Python programs that can be attached to, and why others cannot",
		Long: `ps lists the programs of this user that let hosts come to them, by the names that --attach takes, and
then the other Python processes that it can see. A host can attach by its number to one of Python 3.14 and
newer; of others it says why not.

With --json it prints one object a line: pid, and name and socket, or reason.`,
		Example: `  ndbridge ps
  ndbridge ls --attach trainer`,
		Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: env.command(func(*cobra.Command, []string) error { return printProcesses(env, asJSON) }),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}

func printProcesses(env *environ, asJSON bool) error {
	table := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	for _, p := range processes() {
		var err error
		if asJSON {
			err = writeJSON(env.stdout, p)
		} else {
			_, err = fmt.Fprintf(table, "%d\t%s\t%s\n", p.PID, prose.Line(p.Name), prose.Line(cmp.Or(p.Socket, p.Reason, "can be attached to by its number")))
		}
		if err != nil {
			return err
		}
	}
	return table.Flush()
}

// processes lists the programs that listen, and then other Pythons.
func processes() []pythonProcess {
	var all []pythonProcess
	listens := make(map[int]bool)
	for _, p := range running.List() {
		if running.Listens(p) {
			all = append(all, pythonProcess{PID: p.PID, Name: p.Name, Socket: p.Path})
			listens[p.PID] = true
		}
	}
	entries, _ := os.ReadDir("/proc") // what can be read is listed
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && !listens[pid] && pid != os.Getpid() && isPython(pid) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	for _, pid := range pids {
		p := pythonProcess{PID: pid, Reason: running.Why(pid)}
		if err := running.Askable(pid); p.Reason == "" && err != nil {
			p.Reason = "does not listen, and " + strings.TrimPrefix(explain(err).Message, explain(err).Category+": ")
		}
		all = append(all, p)
	}
	return all
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
