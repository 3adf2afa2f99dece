package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/quirks"
	"github.com/ndbridge/ndbridge/internal/render"
)

// quirkLister carries out "ndbridge quirks".
type quirkLister struct {
	env     *environ
	version string
	json    bool
}

func newQuirks(env *environ) *cobra.Command {
	q := &quirkLister{env: env}
	cmd := &cobra.Command{
		Use:   "quirks [flags] [FRAMEWORK | QUIRK]...",
		Short: "Say what frameworks do otherwise than they should, and what is done about it",
		Long: `quirks prints the tables of quirks that the shipped adapters obey: in which versions a framework does not
do what the export protocols say, what goes wrong, what is done about it (the effect), what you can do
(the remedy), and what shows it. Errors name the quirk that decided in brackets; views say which took
part. A configuration switches a quirk off, or chooses the effect of one that has a choice:

  adapter "torch" {
    quirk "torch.neg-bit-silent" { enabled = false }
    quirk "torch.requires-grad" { effect = "refuse" }
  }

With --json it prints one object a line: id, framework, since and until (the first version that has it,
and the first that no longer has it; "" is open), protocol ("" for all), effect, choices, summary,
remedy, upstream.`,
		Example: `  ndbridge quirks torch
  ndbridge quirks torch --version 2.1
  ndbridge quirks torch.requires-grad
  ndbridge quirks --json | jq -r 'select(.effect == "refuse") | .id'`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return quirkNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: env.command(func(_ *cobra.Command, args []string) error { return q.run(args) }),
	}
	cmd.Flags().StringVar(&q.version, "version", "", "only those of this `version` of the framework")
	cmd.Flags().BoolVar(&q.json, "json", false, "print one JSON object a line")
	return cmd
}

// quirkNames lists what quirks can be asked for by: frameworks, and the quirks themselves.
func quirkNames() []string {
	var frameworks, ids []string
	for _, t := range quirks.Tables() {
		frameworks = append(frameworks, t.Framework)
		for _, q := range t.Quirks {
			ids = append(ids, string(q.ID))
		}
	}
	return append(frameworks, ids...)
}

func (l *quirkLister) run(names []string) error {
	if err := l.check(names); err != nil {
		return err
	}
	var chosen []contract.Quirk
	for _, t := range quirks.Tables() {
		for _, q := range t.Quirks {
			if (len(names) == 0 || slices.Contains(names, q.Framework) || slices.Contains(names, string(q.ID))) &&
				(l.version == "" || q.Applies(l.version)) {
				chosen = append(chosen, q)
			}
		}
	}
	if l.json {
		for _, q := range chosen {
			if err := writeJSON(l.env.stdout, quirkRecordOf(q)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(chosen) == 0 {
		_, err := fmt.Fprintln(l.env.stderr, "no quirks are known")
		return err
	}
	return printQuirks(l.env.stdout, chosen)
}

func (l *quirkLister) check(names []string) error {
	known := quirkNames()
	for _, name := range names {
		if !slices.Contains(known, name) {
			var frameworks []string
			for _, t := range quirks.Tables() {
				frameworks = append(frameworks, t.Framework)
			}
			return usagef("%s: there is no framework or quirk of that name; %s", name,
				prose.Remedy(name, slices.Values(known), "there are tables for "+strings.Join(frameworks, ", ")))
		}
	}
	if l.version == "" {
		return nil
	}
	if _, err := contract.ParseVersion(l.version); err != nil {
		return usagef("--version %s: expected a version, as in 2.1.0", l.version)
	}
	if len(names) == 0 {
		return usagef("--version %s: of which framework? Say ndbridge quirks FRAMEWORK --version %s", l.version, l.version)
	}
	return nil
}

// printQuirks prints a line for each quirk, and the words below it.
func printQuirks(w io.Writer, all []contract.Quirk) error {
	var heads strings.Builder
	table := tabwriter.NewWriter(&heads, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "QUIRK\tVERSIONS\tEFFECT\tPROTOCOL") // into memory
	for _, q := range all {
		protocol := q.Protocol
		if protocol == "" {
			protocol = "all"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%v\t%s\n", q.ID, q.Versions(), q.Effect, protocol) // into memory
	}
	_ = table.Flush() // into memory
	head, lines, _ := strings.Cut(heads.String(), "\n")
	var b strings.Builder
	paragraph := func(head, text string) { prose.Paragraph(&b, render.Width(w), "    "+head, text) }
	b.WriteString(head + "\n")
	for i, line := range strings.Split(strings.TrimSuffix(lines, "\n"), "\n") {
		b.WriteString(line + "\n")
		q := all[i]
		paragraph("", q.Summary)
		paragraph("remedy: ", q.Remedy)
		if len(q.Choices) > 0 {
			paragraph("choose: ", `effect = "`+strings.Join(q.Choices, `" or "`)+`"`)
		}
		paragraph("see: ", q.Upstream)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// quirkRecord is what "quirks --json" says about one quirk. Scripts depend on its keys.
type quirkRecord struct {
	ID        core.QuirkID    `json:"id"`
	Framework string          `json:"framework"`
	Since     string          `json:"since"`
	Until     string          `json:"until"`
	Protocol  string          `json:"protocol"`
	Effect    contract.Effect `json:"effect"`
	Choices   []string        `json:"choices"`
	Summary   string          `json:"summary"`
	Remedy    string          `json:"remedy"`
	Upstream  string          `json:"upstream"`
}

func quirkRecordOf(q contract.Quirk) quirkRecord {
	return quirkRecord{
		ID: q.ID, Framework: q.Framework, Since: q.Since, Until: q.Until, Protocol: q.Protocol, Effect: q.Effect,
		Choices: append([]string{}, q.Choices...), Summary: q.Summary, Remedy: q.Remedy, Upstream: q.Upstream,
	}
}
