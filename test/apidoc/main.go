// Command apidoc writes the reference of the packages that others may import, from their comments, as pages for the
// documentation site.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: apidoc REPOSITORY FOLDER")
		os.Exit(2) //nolint:forbidigo // this is main
	}
	if err := writePages(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "apidoc:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// writePages writes one page for each package: that of core/contract is core/contract.md.
func writePages(root, dir string) error {
	packages, err := find(root)
	if err != nil {
		return err
	}
	for _, p := range packages {
		text, err := p.page(packages)
		if err != nil {
			return fmt.Errorf("package %s: %w", p.dir, err)
		}
		file := filepath.Join(dir, p.dir+".md")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // for everybody to read
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // for everybody to read
			return err
		}
	}
	return nil
}
