package running

import (
	"os"
	"strings"
	"testing"
)

// TestWhyNoAccess names what the kernel decides by, in its order.
func TestWhyNoAccess(t *testing.T) {
	t.Parallel()
	ours := credentials{uids: [3]int{1000, 1000, 1000}, gids: [3]int{100, 100, 100}, permitted: 0b0110}
	for want, edit := range map[string]func(c *credentials) (scope string){
		"it runs as user 1001, and this one as user 1000": func(c *credentials) string { c.uids, c.permitted = [3]int{1001, 1001, 1001}, 0b1000; return "1" },
		"it runs as user 0, and this one as user 1000":    func(c *credentials) string { c.uids[1] = 0; return "0" },
		"it runs as group 101, and this one as group 100": func(c *credentials) string { c.gids[2] = 101; return "1" },
		"it has capabilities that this one has not":       func(c *credentials) string { c.permitted = 0b1010; return "1" },
		"kernel.yama.ptrace_scope is 2":                   func(*credentials) string { return "2" },
		"it is protected":                                 func(c *credentials) string { c.permitted = 0b0100; return "0" },
	} {
		theirs := ours
		scope := edit(&theirs)
		if why, _ := whyNoAccess(theirs, ours, scope); !strings.Contains(why, want) {
			t.Errorf("%+v, %s: %q, want %q", theirs, scope, why, want)
		}
	}
}

// TestCredentials reads those of this process.
func TestCredentials(t *testing.T) {
	t.Parallel()
	c, err := credentialsOf("self")
	if err != nil || c.uids[1] != os.Geteuid() || c.gids[0] != os.Getgid() {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := credentialsOf("nobody"); err == nil {
		t.Error("no error of a process that there is not")
	}
}
