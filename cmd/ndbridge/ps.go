package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/running"
)

// pythonProcess is one line of "ndbridge ps".
type pythonProcess struct {
	PID    int    `json:"pid"`
	Parent int    `json:"parent,omitempty"` // a process of the list that it comes from
	Name   string `json:"name,omitempty"`   // under which it listens
	Socket string `json:"socket,omitempty"` // where
	Reason string `json:"reason,omitempty"` // why no host can attach

	depth int // how many of the list it comes from
}

func newPs(env *environ) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the Python programs that can be attached to, and why others cannot",
		Long: `ps lists the programs of this user that let hosts come to them, by the names that --attach takes, and
then the other Python processes that it can see, each with those that come from it below it. A host can attach
by its number to one of Python 3.14 and newer; of others it says why not.

With --json it prints one object a line: pid, parent if that is one of the list, and name and socket, or reason.`,
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
			_, err = fmt.Fprintf(table, "%d\t%s%s\t%s\n", p.PID, strings.Repeat("  ", p.depth), prose.Line(p.Name), prose.Line(cmp.Or(p.Socket, p.Reason, "can be attached to by its number")))
		}
		if err != nil {
			return err
		}
	}
	return table.Flush()
}

// processes lists the programs that listen, and then other Pythons, and behind each those that come from it.
func processes() []pythonProcess {
	var all []pythonProcess
	found := running.Processes()
	var list func(parent, depth int)
	list = func(parent, depth int) {
		for _, p := range found {
			if p.Parent != parent || p.PID == os.Getpid() {
				continue
			}
			line := pythonProcess{PID: p.PID, Parent: parent, Name: p.Name, Socket: p.Socket, depth: depth}
			if p.Err != nil {
				line.Reason = strings.TrimPrefix(explain(p.Err).Message, explain(p.Err).Category+": ")
			}
			all = append(all, line)
			list(p.PID, depth+1)
		}
	}
	list(0, 0)
	return all
}
