// Command npyfile is an ndbridge plugin that is not Python: it serves the arrays of a folder of .npy
// and .npz files from memory maps. It is an ordinary executable, and an example of how to write one
// with adapters/kit.
//
// A host runs it with the folder as its argument; see the README beside this file.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/ndbridge/ndbridge/adapters/kit"
)

// version is this plugin's own.
const version = "0.1.0"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "npyfile:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

func run(args []string) (err error) {
	dir := "."
	switch len(args) {
	case 0:
	case 1:
		dir = args[0]
	default:
		return fmt.Errorf("expected one folder, got %d arguments", len(args))
	}
	// Whatever is wrong with the folder, the host shall hear it: so serve, and refuse to open.
	p := newProducer(dir)
	defer func() {
		if closeErr := p.Close(); err == nil {
			err = closeErr
		}
	}()
	return kit.Serve(context.Background(), p, kit.ServeOptions{Name: "npyfile", Version: version})
}
