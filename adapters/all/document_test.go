package all_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ndbridge/ndbridge/core/contract"
)

const introduction = `<!-- Written by "make generate" from adapters/*/quirks.go; edit it there. -->
# Quirks

Array frameworks do not always do what the export protocols say, and versions differ from each other. Each such deviation is a *quirk*: a row in the
table of the framework's adapter, which edits the plan by which an array is read. A view names the quirks that took part
(` + "`view.Quirks()`" + `), and an error names the one that decided. A test on the real framework proves each row, and fails without it. The tests run on the
CPU if the quirk shows there, those of PyCUDA, Numba and cuda.core also on a simulated driver. The other rows about GPUs are tested on a GPU
(make test-gpu).

    ndbridge quirks                            # these tables
    ndbridge quirks torch --version 2.1        # the quirks of one version
    ndbridge doctor --python .venv/bin/python  # the quirks in force in an environment, and whether all is well

| effect | what is done about it |
| --- | --- |
| refuse | the array cannot be viewed; the error says why, and names a remedy |
| reroute | another protocol is asked |
| correct | the same protocol is asked, with other arguments, or its answer is corrected |
| stage | the array is copied, if the request allows it |

A configuration can switch a quirk off; then the framework is taken at its word. A few quirks have several effects to choose from; the usual one stands
first.

` + "```hcl" + `
adapter "torch" {
  quirk "torch.neg-bit-silent" { enabled = false }
  quirk "torch.requires-grad" { effect = "refuse" }
}
` + "```" + `

The column "versions" means versions of the framework. A quirk without an upper bound is still present in the newest version that the tests run against.
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

func effect(q contract.Quirk) string {
	text := string(q.Effect)
	if q.Protocol != "" {
		text += ": " + q.Protocol
	}
	if len(q.Choices) > 0 {
		text += "<br>choose `" + strings.Join(q.Choices, "`, `") + "`"
	}
	return text
}

func what(q contract.Quirk) string {
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
