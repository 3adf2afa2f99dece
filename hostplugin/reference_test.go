package hostplugin

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// in gives a file with a text in a block.
func in(block, inside string) string {
	switch block {
	case "program":
		return "program \"a\" {\n" + inside + "\n}\n"
	case "adapter":
		return "adapter \"numpy\" {\n" + inside + "\n}\n"
	case "quirk":
		return "adapter \"numpy\" {\n quirk \"numpy.longdouble\" {\n" + inside + "\n}\n}\n"
	default:
		return inside
	}
}

// TestReferenceListsTheSchema holds the reference of the configuration file to what the decoder accepts: it describes the
// attributes of each block, all of them and no others, and the page has a section for each block. What the decoder
// accepts is what it lists when it refuses a name.
func TestReferenceListsTheSchema(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	described := map[string][]string{"": nil} // the file itself
	for _, b := range describedBlocks() {
		for _, a := range b.Attributes {
			described[b.Name] = append(described[b.Name], a.Name)
		}
	}
	for block, got := range described {
		for _, name := range accepted(t, in(block, "no_such_name {}")) {
			_, known := described[name]
			_, section, _ := strings.Cut(string(page), "\n## "+name+"\n")
			section, _, _ = strings.Cut(section, "\n## ")
			if !known || !strings.Contains(section, "```hcl\n") {
				t.Errorf("%s has no section with an example of %q, a block that may stand in %q", referencePage, name, block)
			}
		}
		slices.Sort(got)
		if want := accepted(t, in(block, "no_such_name = 1")); !slices.Equal(got, want) {
			t.Errorf("the reference describes these attributes of %q: %q, want %q", block, got, want)
		}
	}
}

// TestReferenceKnowsTheTypes holds the types and the defaults of the reference to the decoder. What it takes shows in how it
// refuses a list in a list, which is a value of no type.
func TestReferenceKnowsTheTypes(t *testing.T) {
	t.Parallel()
	refusals := map[string]string{
		"a string": "string", "true or false": "bool", "a number": "number", "a string, a number or a bool": "list",
		"a map of strings": "map", "a positive time with its unit": "duration", "a time with its unit": "duration",
		"a whole number of bytes": "size",
	}
	said := regexp.MustCompile(`must be ((?:[a-z ]|, a )+?)(?:, (?:not|such|as|or a string)|\.)`)
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range describedBlocks() {
		for _, a := range b.Attributes {
			_, err := Parse("x.hcl", []byte(in(b.Name, a.Name+" = [[]]")))
			match := said.FindStringSubmatch(fmt.Sprint(err))
			if match == nil {
				t.Errorf("%s: no type in %v", a.Name, err)
				continue
			}
			// Of strings, only paths are made absolute.
			absolute := func(value string) bool {
				src := a.Name + " = \"" + value + "\""
				if a.Name != "script" && a.Name != "module" {
					src += "\nscript = \"y\""
				}
				c, err := Parse("x.hcl", []byte(in(b.Name, src)))
				if err != nil {
					return false
				}
				p := c.Programs[0]
				all := map[string]string{"python": p.Python, "script": p.Script, "dir": p.Dir, "plugin": p.Plugin}
				return all[a.Name] == filepath.Join(here, value)
			}
			got := refusals[match[1]]
			if got == "string" && b.Name == "program" {
				switch inFolder, bare := absolute("d/x"), absolute("x"); {
				case bare:
					got = "path"
				case inFolder:
					got = "path or name"
				}
			}
			if got != a.Type {
				t.Errorf("the type of %s is %q, the reference says %q", a.Name, got, a.Type)
			}
			if value, ok := strings.CutPrefix(a.Default, "`"); ok {
				value = a.Name + " = " + strings.TrimSuffix(value, "`")
				if b.Name == "program" {
					value += "\nscript = \"y\""
				}
				if _, err := Parse("x.hcl", []byte(in(b.Name, value))); err != nil {
					t.Errorf("the default of %s is no value of it: %v", a.Name, err)
				}
			}
		}
	}
}

// TestReferenceKnowsTheDefaults holds the defaults that the host itself sets.
func TestReferenceKnowsTheDefaults(t *testing.T) {
	t.Parallel()
	var written strings.Builder
	for _, b := range describedBlocks() {
		for _, a := range b.Attributes {
			if value, ok := strings.CutPrefix(a.Default, "`"); ok && b.Name == "program" {
				fmt.Fprintf(&written, "%s = %s\n", a.Name, strings.TrimSuffix(value, "`"))
			}
		}
	}
	effective := func(src string) string {
		c, err := Parse("x.hcl", []byte(in("program", "script = \"y\"\n"+src)))
		if err != nil {
			t.Fatal(err)
		}
		p := c.Programs[0]
		python := p.Python
		if python == "" {
			python = defaultPython
		}
		return fmt.Sprint(python, p.plugin(), !p.SharedHeap.Off, p.CopyMappedFiles, p.handoff(), p.startTimeout())
	}
	if got, want := effective(written.String()), effective(""); got != want {
		t.Errorf("with the reference's defaults written out a program is %s, without them %s", got, want)
	}
}

// accepted gives the names that stand in the refusal of the name no_such_name, in order.
func accepted(t *testing.T, src string) []string {
	t.Helper()
	_, err := Parse("x.hcl", []byte(src))
	if err == nil {
		t.Fatalf("accepted: %s", src)
	}
	refusal := regexp.MustCompile(`(?m)unknown (attribute|block) "no_such_name": (.*)$`).FindStringSubmatch(err.Error())
	if refusal == nil {
		t.Fatalf("no refusal in: %v", err)
	}
	if strings.HasPrefix(refusal[2], "There are no ") {
		return nil
	}
	list := regexp.MustCompile(`The (?:attribute|block)s of [a-z ]+ are: (.*)\.$`).FindStringSubmatch(refusal[2])
	if list == nil {
		t.Fatalf("no list in: %v", err)
	}
	names := make(map[string]struct{})
	for name := range strings.SplitSeq(list[1], ", ") {
		names[name] = struct{}{}
	}
	return slices.Sorted(maps.Keys(names))
}
