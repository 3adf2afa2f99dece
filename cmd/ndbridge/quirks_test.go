package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/internal/quirks"
)

// TestQuirks holds that every quirk is shown with all that is known of it.
func TestQuirks(t *testing.T) {
	t.Parallel()
	r := command(t, "quirks")
	text := strings.Join(strings.Fields(r.stdout), " ")
	for _, table := range quirks.Tables() {
		for _, q := range table.Quirks {
			for _, part := range append([]string{string(q.ID), q.Versions(), q.Summary, q.Remedy, q.Upstream}, q.Choices...) {
				if !strings.Contains(text, strings.Join(strings.Fields(part), " ")) {
					t.Errorf("%s: %q is not said", q.ID, part)
				}
			}
		}
	}
	for line := range strings.Lines(r.stdout) {
		if len(line) > 101 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
	r.want(t, statusOK, "QUIRK ", "")
}

// TestQuirksByName holds what is chosen by a framework, its version, and a quirk's name.
func TestQuirksByName(t *testing.T) {
	t.Parallel()
	ids := func(args ...string) (all []string) {
		r := command(t, append([]string{"quirks", "--json"}, args...)...)
		r.want(t, statusOK, "", "")
		for _, object := range r.objects(t) {
			id, _ := object["id"].(string)
			all = append(all, id)
		}
		return all
	}
	old, recent := ids("numpy", "--version", "1.22"), ids("numpy", "--version", "2.1")
	const id = "numpy.bool-before-1.25"
	if !slices.Contains(old, id) || slices.Contains(recent, id) || !slices.Contains(recent, "numpy.object-dtype") {
		t.Errorf("1.22 has %v, 2.1 has %v", old, recent)
	}
	if other := ids("torch"); len(other) == 0 || slices.ContainsFunc(other, func(id string) bool { return !strings.HasPrefix(id, "torch.") }) {
		t.Errorf("torch has %v", other)
	}
	if one := ids("numpy.longdouble", "torch.requires-grad"); !slices.Equal(one, []string{"numpy.longdouble", "torch.requires-grad"}) {
		t.Errorf("got %v", one)
	}
	command(t, "quirks", "torch.requires-grad").want(t, statusOK, `    choose: effect = "detach" or "refuse"`, "")
	command(t, "quirks", id, "--version", "2").want(t, statusOK, "", "no quirks are known\n")
}

// TestQuirkJSON holds the keys that scripts depend on.
func TestQuirkJSON(t *testing.T) {
	t.Parallel()
	r := command(t, "quirks", "--json", "numpy.readonly-needs-versioned")
	r.want(t, statusOK, `{"id":"numpy.readonly-needs-versioned","framework":"numpy","since":"1.22.0","until":"2.1.0","protocol":"dlpack",`+
		`"effect":"reroute","choices":[],"summary":"`, "")
	r.want(t, statusOK, `,"remedy":"","upstream":"`, "")
}

// TestQuirksMisused holds that what makes no sense is said, with what was probably meant.
func TestQuirksMisused(t *testing.T) {
	t.Parallel()
	command(t, "quirks", "toch").want(t, statusUsage, "", `toch: there is no framework or quirk of that name; did you mean "torch"?`)
	command(t, "quirks", "torch.require-grad").want(t, statusUsage, "", `did you mean "torch.requires-grad"?`)
	command(t, "quirks", "fortran").want(t, statusUsage, "", "there are tables for numba, numpy, torch, ")
	command(t, "quirks", "--version", "2").want(t, statusUsage, "", "of which framework? Say ndbridge quirks FRAMEWORK --version 2")
	command(t, "quirks", "torch", "--version", "new").want(t, statusUsage, "", "--version new: expected a version, as in 2.1.0")
}
