package running

import (
	"os"
	"os/exec"
	"testing"
)

// A child that has ended by the time that somebody asks who has started it is no second program of its name.
func TestAncestorOfEndedChild(t *testing.T) {
	t.Parallel()
	child := exec.CommandContext(t.Context(), "true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	self := Program{Name: "family", PID: os.Getpid()}
	if p, ok := ancestor([]Program{self, {Name: "family", PID: child.Process.Pid}}); !ok || p != self {
		t.Errorf("ancestor = %+v, %v", p, ok)
	}
}
