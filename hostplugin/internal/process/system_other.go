//go:build !linux

package process

import "syscall"

// No program is started here: hostplugin says before that programs need Linux.

func thread() int32 { return 0 }

func attributes() *syscall.SysProcAttr { return nil }

func kill(int) {}

func signalName(syscall.Signal) string { return "" }

func awaitExit(int) {}
