// Command ndbridge runs Python programs and looks at their arrays: the very pages that the program
// wrote, without a copy.
package main

import "os"

func main() {
	os.Exit(carryOut(os.Args[1:], os.Stdout, os.Stderr)) //nolint:forbidigo // this is main
}
