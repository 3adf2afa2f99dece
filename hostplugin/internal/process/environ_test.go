package process

import (
	"slices"
	"testing"
)

func TestSetenvAndGetenv(t *testing.T) {
	t.Parallel()
	env := Setenv([]string{"A=1", "B=2", "A=3", "AB=4", "odd", "C="}, map[string]string{"A": "x=y", "odd": "even", "D": ""})
	if want := []string{"B=2", "AB=4", "C=", "A=x=y", "D=", "odd=even"}; !slices.Equal(env, want) {
		t.Errorf("Setenv = %q, want %q", env, want)
	}
	for name, want := range map[string]string{"A": "x=y", "AB": "4", "C": "", "D": "", "none": "", "B": "2", "odd": "even"} {
		if got := Getenv(env, name); got != want {
			t.Errorf("Getenv(%q) = %q, want %q", name, got, want)
		}
	}
}
