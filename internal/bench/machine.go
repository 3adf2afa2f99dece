package bench

import (
	"os"
	"runtime"
	"strings"
)

// Machine is where it was measured.
type Machine struct {
	CPUs        int               `json:"cpus"`
	Model       string            `json:"model"`
	Kernel      string            `json:"kernel"`
	Go          string            `json:"go"`
	Interpreter string            `json:"interpreter"`
	Frameworks  map[string]string `json:"frameworks"` // versions
}

// NewMachine looks at this one.
func NewMachine(interpreter string, frameworks map[string]string) Machine {
	return Machine{
		CPUs: runtime.NumCPU(), Model: model(), Kernel: content("/proc/sys/kernel/osrelease"), Go: runtime.Version(),
		Interpreter: interpreter, Frameworks: frameworks,
	}
}

func model() string {
	for line := range strings.Lines(content("/proc/cpuinfo")) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processors"
}

func content(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
