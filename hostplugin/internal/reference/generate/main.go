// Command generate writes the reference of the configuration file. Its argument is the repository's root, or another
// directory to write the same path into.
package main

import (
	"errors"
	"log"
	"os"
	"path/filepath"

	"github.com/ndbridge/ndbridge/hostplugin/internal/reference"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("the argument is the directory to write into")
	}
	text, err := reference.Document()
	if err != nil {
		return err
	}
	path := filepath.Join(args[0], reference.Page)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o666) //nolint:gosec // a source file
}
