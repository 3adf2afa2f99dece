//go:build !linux

package handoff

func currentCPU() (cpu uint32, ok bool) { return 0, false }
