package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

const introduction = `<!-- Written by "make generate" from adapters/*/quirks.go; edit it there. -->
# Quirks

Array frameworks do not always do what the export protocols say, and each version does something else. What is special is data:
a row in the table of the framework's adapter, which edits the plan by which an array is read. Views name the quirks that took part
(` + "`view.Quirks()`" + `), errors name the one that decided. Each row is proven by a test on the real framework that fails without it:
on the CPU where it shows there; PyCUDA, Numba and cuda.core on a simulated driver too; the others' rows about GPUs on a GPU (make test-gpu).

    ndbridge quirks                            # these tables
    ndbridge quirks torch --version 2.1        # what holds for one version
    ndbridge doctor --python .venv/bin/python  # what is in force in an environment, and whether all is well

| effect | what is done about it |
| --- | --- |
| refuse | the array cannot be viewed; the error says why, and the remedy |
| reroute | another protocol is asked |
| correct | the same protocol is asked, with other arguments, or an answer is put right |
| stage | the array is copied, if the request allows it |

A quirk that is switched off is not obeyed: the framework is taken at its word. A few have an effect to choose, the usual one first.

` + "```hcl" + `
adapter "torch" {
  quirk "torch.neg-bit-silent" { enabled = false }
  quirk "torch.requires-grad" { effect = "refuse" }
}
` + "```" + `

A version is one of the framework. What has no upper bound is still so in the newest version that the tests run against.
`

// document is docs/QUIRKS.md.
func document(tables []table) []byte {
	var b bytes.Buffer
	b.WriteString(introduction)
	for _, t := range tables {
		fmt.Fprintf(&b, "\n## %s\n", t.framework)
		if len(t.quirks) == 0 {
			b.WriteString("\nNone are known.\n")
			continue
		}
		b.WriteString("\n| quirk | versions | effect | what goes wrong, and what you can do | see |\n| --- | --- | --- | --- | --- |\n")
		for _, q := range t.quirks {
			fmt.Fprintf(&b, "| <a id=\"%s\"></a>`%s` | %s | %s | %s | %s |\n",
				q.ID, q.ID, cell(q.Versions()), effect(q), what(q), cell(q.Upstream))
		}
	}
	return b.Bytes()
}

func effect(q core.Quirk) string {
	text := q.Effect.String()
	if q.Protocol != "" {
		text += ": " + q.Protocol
	}
	if len(q.Choices) > 0 {
		text += "<br>choose `" + strings.Join(q.Choices, "`, `") + "`"
	}
	return text
}

func what(q core.Quirk) string {
	text := sentence(q.Summary)
	if q.Remedy != "" {
		text += "<br>**Remedy:** " + sentence(q.Remedy)
	}
	return text
}

// sentence gives a part of a sentence a capital and a full stop, unless it begins with code.
func sentence(s string) string {
	first, _, _ := strings.Cut(s, " ")
	if !strings.ContainsAny(first, "_.(") {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return cell(s) + "."
}

// cell keeps Markdown from reading anything into a text.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "_", `\_`, "*", `\*`, "[", `\[`, "]", `\]`, "\n", " ").Replace(s)
}
