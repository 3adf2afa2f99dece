//go:build cuda

// Package main is a library that calls the driver, as a plugin does.
package main

import (
	"C"

	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

//export ndbridge_test_active
func ndbridge_test_active() bool { return driver.Active() || driver.Init() == nil }

func main() {}
