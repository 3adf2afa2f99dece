package main

import (
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

// TestDoctor holds what the command says of an environment that is well, to people and to programs.
func TestDoctor(t *testing.T) {
	t.Parallel()
	r := command(t, "doctor", "--python", python(t), "numpy")
	r.want(t, statusOK, "ok     numpy        ", "")
	r.want(t, statusOK, "\nall is well\n", "")
	r = command(t, "doctor", "--python", python(t), "--json", "numpy")
	r.want(t, statusOK, `{"part":"numpy","state":"ok","version":"`, "")
	var parts []string
	for _, object := range r.objects(t) {
		name, _ := object["part"].(string)
		parts = append(parts, name)
	}
	if !slices.Equal(parts, []string{"machine", "interpreter", "numpy"}) {
		t.Errorf("parts %v", parts)
	}
}

// TestDoctorFindsFault holds the status and the last line where something is wrong.
func TestDoctorFindsFault(t *testing.T) {
	t.Parallel()
	r := command(t, "doctor", "--python", python(t), "dali")
	r.want(t, statusFailed, "wrong  dali\n                    it is not installed\n                      remedy: install it", "")
	r.want(t, statusFailed, "\nsomething is wrong: dali\n", "")
	r = command(t, "doctor", "--python", "/bin/true", "--json")
	r.want(t, statusFailed, `{"part":"interpreter","state":"wrong",`, "")
}

// TestDoctorWithoutFrameworks holds that an interpreter without any is well, and that this is said.
func TestDoctorWithoutFrameworks(t *testing.T) {
	t.Parallel()
	bare := bootstraptest.WriteProgram(t, "python3", "#!/bin/sh\nexec "+python(t)+" -S \"$@\"\n")
	r := command(t, "doctor", "--python", bare)
	r.want(t, statusOK, "-      numpy        not installed\n", "")
	r.want(t, statusOK, "\nall is well, but no array framework is installed\n", "")
}

// TestDoctorWithFewDescriptors holds that the limit of the programs is what is looked at. (The soft one is not:
// Go raises it, in a plugin as well.)
func TestDoctorWithFewDescriptors(t *testing.T) {
	t.Parallel()
	limited := bootstraptest.WriteProgram(t, "python3", "#!/bin/sh\nulimit -n 100\nexec "+python(t)+" \"$@\"\n")
	r := command(t, "doctor", "--python", limited, "numpy")
	r.want(t, statusFailed, "a program may have only 100 descriptors open\n                      remedy: ulimit -n 1024\n", "")
}

// TestDoctorMisused holds that what makes no sense is said.
func TestDoctorMisused(t *testing.T) {
	t.Parallel()
	command(t, "doctor", "nunpy").want(t, statusUsage, "", `nunpy: no framework of that name is examined; did you mean "numpy"?`)
	command(t, "doctor", "--timeout", "0").want(t, statusUsage, "", "--timeout must be positive")
	command(t, "doctor", "--color", "red").want(t, statusUsage, "", "--color red: expected auto, always or never")
}
