package hostplugin

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReferenceListsTheSchema holds docs/configuration.md to what the decoder accepts: the tables list the
// attributes of each block, all of them and no others, and each block has a section. What the decoder accepts
// is what it lists when it refuses a name.
func TestReferenceListsTheSchema(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string)
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		sections[title] = body
	}
	open := func(inside string) string { return inside }
	for block, in := range map[string]func(string) string{
		"":        open,
		"program": func(inside string) string { return "program \"a\" {\n" + inside + "\n}\n" },
		"adapter": func(inside string) string { return "adapter \"numpy\" {\n" + inside + "\n}\n" },
		"quirk": func(inside string) string {
			return "adapter \"numpy\" {\n quirk \"numpy.longdouble\" {\n" + inside + "\n}\n}\n"
		},
	} {
		for _, name := range accepted(t, in("no_such_name {}")) {
			if _, ok := sections[name]; !ok {
				t.Errorf("docs/configuration.md has no section %q, a block that may stand in %q", name, block)
			}
		}
		want := accepted(t, in("no_such_name = 1"))
		var got []string
		for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(sections[block], -1) {
			got = append(got, row[1])
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("docs/configuration.md describes these attributes of %q: %q, want %q", block, got, want)
		}
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
