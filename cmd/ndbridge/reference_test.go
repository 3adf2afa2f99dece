package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ndbridge/ndbridge/internal/golden"
)

// TestReferenceIsCurrent holds docs/commands.md to what the commands say of themselves. With -update it writes the file.
func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	golden.Compare(t, "../../docs/commands.md", []byte(reference(newRoot(newEnviron(io.Discard, io.Discard)))))
}

// reference gives the help of all commands as one page.
func reference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(`<!-- Written by "make generate" from the help of the commands, in cmd/ndbridge; edit it there. -->
# The command line

` + markdown(root.Long) + `
Each command prints what stands here with ` + "`--help`" + `; packages have it as manual pages, too.

| command | what it does |
| --- | --- |
`)
	commands := leaves(root)
	for _, cmd := range commands {
		name := nameOf(cmd)
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", cmd.CommandPath(), strings.ReplaceAll(name, " ", "-"), markdown(cmd.Short))
	}
	for _, cmd := range commands {
		fmt.Fprintf(&b, "\n## %s\n\n", nameOf(cmd))
		if cmd.Long == "" {
			fmt.Fprintf(&b, "%s.\n\n", markdown(cmd.Short))
		} else {
			fmt.Fprintf(&b, "%s\n", markdown(cmd.Long))
		}
		fmt.Fprintf(&b, "    %s\n", cmd.UseLine())
		if cmd.Example != "" {
			fmt.Fprintf(&b, "\nExamples:\n\n%s\n", example(cmd.Example))
		}
		if flags := flagTable(cmd.NonInheritedFlags()); flags != "" {
			fmt.Fprintf(&b, "\n| flag | what it says |\n| --- | --- |\n%s", flags)
		}
	}
	return b.String()
}

// leaves gives the commands that do something, not those that only have others below them.
func leaves(cmd *cobra.Command) (all []*cobra.Command) {
	if !cmd.HasSubCommands() {
		return []*cobra.Command{cmd}
	}
	for _, sub := range cmd.Commands() {
		all = append(all, leaves(sub)...)
	}
	return all
}

// nameOf is what a command is called behind "ndbridge".
func nameOf(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// markdown shows a text as it is, however it is set.
func markdown(text string) string {
	text = strings.NewReplacer("_", `\_`, "*", `\*`, "<", `\<`, "|", `\|`).Replace(text)
	if strings.Contains(text, "\n") {
		text += "\n"
	}
	return text
}

// example makes a block of code of lines that may be indented.
func example(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, "    "+strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

func flagTable(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		fmt.Fprintf(&b, "| `%s` | %s", name, markdown(usage))
		switch f.DefValue {
		case "", "false", "[]", "0", "0s":
		default:
			fmt.Fprintf(&b, " (default `%s`)", f.DefValue)
		}
		b.WriteString(" |\n")
	})
	return b.String()
}
