package all_test

import (
	"bytes"
	"fmt"
	"go/format"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/all"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/golden"
)

// TestGeneratedFilesAreCurrent holds that what is derived from the adapters' tables of quirks follows them: the copy that
// hosts hold, who cannot ask an adapter, and the documentation.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	t.Parallel()
	files, err := generated()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		golden.Compare(t, filepath.Join("../..", name), want)
	}
}

// table is what one adapter knows.
type table struct {
	framework string
	quirks    []contract.Quirk
}

// generated gives the files by their paths below the repository's root.
func generated() (map[string][]byte, error) {
	var tables []table
	for _, a := range all.Adapters() {
		tables = append(tables, table{a.Framework(), a.Quirks()})
	}
	source, err := format.Source(source(tables))
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"internal/quirks/table.go": source,
		"docs/QUIRKS.md":           document(tables),
	}, nil
}

// source is the tables as Go.
func source(tables []table) []byte {
	var b bytes.Buffer
	b.WriteString("// Code generated from the adapters by adapters/all. DO NOT EDIT.\n\n" +
		"package quirks\n\nimport \"github.com/ndbridge/ndbridge/core/contract\"\n\nfunc tables() []Table {\nreturn []Table{\n")
	for _, t := range tables {
		fmt.Fprintf(&b, "{Framework: %q, Quirks: []contract.Quirk{\n", t.framework)
		for _, q := range t.quirks {
			fmt.Fprintf(&b, "{\nID: %q, Framework: %q, Effect: contract.Effect%s,\n",
				q.ID, q.Framework, strings.Title(string(q.Effect))) //nolint:staticcheck // ASCII letters
			field := func(name, value string) {
				if value != "" {
					fmt.Fprintf(&b, "%s: %q,\n", name, value)
				}
			}
			field("Since", q.Since)
			field("Until", q.Until)
			field("Protocol", q.Protocol)
			if len(q.Choices) > 0 {
				fmt.Fprintf(&b, "Choices: %#v,\n", q.Choices)
			}
			field("Summary", q.Summary)
			field("Remedy", q.Remedy)
			field("Upstream", q.Upstream)
			b.WriteString("},\n")
		}
		b.WriteString("}},\n")
	}
	b.WriteString("}\n}\n")
	return b.Bytes()
}
