// Command ndbridge runs Python programs and looks at their arrays: the very pages that the program
// wrote, without a copy.
package main

import (
	"os"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) //nolint:forbidigo // this is main
}
