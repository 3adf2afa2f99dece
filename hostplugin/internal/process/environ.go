package process

import (
	"maps"
	"slices"
	"strings"
)

// Setenv gives env with other values for some variables. It may change env.
func Setenv(env []string, set map[string]string) []string {
	env = slices.DeleteFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		_, ok := set[name]
		return ok
	})
	for _, name := range slices.Sorted(maps.Keys(set)) {
		env = append(env, name+"="+set[name])
	}
	return env
}

// Getenv gives the value of a variable, or "" if it is not set.
func Getenv(env []string, name string) string {
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}
