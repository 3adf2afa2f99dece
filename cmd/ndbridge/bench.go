package main

import (
	"github.com/spf13/cobra"
)

func newBench(env *environ) *cobra.Command {
	var asJSON bool
	o := meter{Stderr: env.stderr, Progress: func(what string) { env.stderr.Progress("%s", what) }}
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure how long it takes to refresh views with an interpreter's own frameworks",
		Long: benchHelp, Example: benchExamples,
		Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: env.command(func(cmd *cobra.Command, _ []string) error {
			if o.Rounds < 1 {
				return usagef("--rounds must be positive")
			}
			r, err := o.measure(cmd.Context())
			env.stderr.Stop()
			switch {
			case err != nil:
				return err
			case asJSON:
				return r.writeObjects(env.stdout)
			}
			return r.writeTable(env.stdout)
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Python, "python", "python3", "the `interpreter`, a path or a name on PATH")
	f.StringVar(&o.Plugin, "plugin", "", "the plugin: a shipped one by name, or a `path` (default all)")
	f.IntVar(&o.Rounds, "rounds", 20, "how often all is measured, in turns: the more, the surer")
	f.BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}
