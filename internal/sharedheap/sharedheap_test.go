package sharedheap

import "testing"

func TestStateText(t *testing.T) {
	t.Parallel()
	for state, want := range map[State]string{
		Idle:         "on",
		On:           "on",
		Off:          "off: the threshold is 0",
		NoMemfd:      "off: memfd_create is forbidden",
		NoAddresses:  "off: a limit on address space or data is in force",
		StrictCommit: "off: vm.overcommit_memory is 2",
		99:           "state 99",
	} {
		if got := state.String(); got != want {
			t.Errorf("State(%d) is %q, want %q", uint32(state), got, want)
		}
		if got := state.Works(); got != (want == "on") {
			t.Errorf("State(%d).Works() = %v", uint32(state), got)
		}
	}
}
