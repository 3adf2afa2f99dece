package main

import (
	"slices"
	"strings"
	"testing"
)

func TestLists(t *testing.T) {
	t.Parallel()
	lists, err := readLists("../requirements")
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, f := range frameworks() {
		for _, l := range lists {
			if l.of(f) && strings.HasPrefix(l.name, f.name+"-") && len(l.pythons) == 0 {
				t.Errorf("%s is for no Python", l.name)
			}
			if l.of(f) {
				made += len(l.pythons)
			}
			if l.of(f) && len(l.requirements(f, "")) == 0 {
				t.Errorf("%s has no %s", l.name, f.name)
			}
		}
	}
	if made < 12 {
		t.Errorf("the matrix makes only %d environments", made)
	}
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	jax := framework{"jax", []string{"jax", "jaxlib"}}
	l := parseList("old", `# python >= 3.11
# matrix 3.11 3.12
jax==0.4.18; python_version >= "3.11"
jax==0.4.17; python_version < "3.11"
jaxlib==0.4.18
numpy==1.26.4
`)
	if !slices.Equal(l.pythons, []string{"3.11", "3.12"}) {
		t.Errorf("for the Pythons %v", l.pythons)
	}
	for version, want := range map[string][]string{
		"0.4.18":     {"jax==0.4.18", "jaxlib==0.4.18"},
		"0.4.18+cpu": {"jax==0.4.18", "jaxlib==0.4.18"},
		"0.5.0":      nil,
		"":           {"jax==0.4.18", "jax==0.4.17", "jaxlib==0.4.18"},
	} {
		if got := l.requirements(jax, version); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", version, got, want)
		}
	}
	if l.of(framework{"numpy", []string{"numpy"}}) {
		t.Error("a list that only needs NumPy is one of its versions")
	}
}
