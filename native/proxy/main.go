// Command proxy writes the modules of a repository's tree as a module proxy, for GOPROXY=file://OUT: proxy TREE VERSION OUT. Their
// files are what git would take into a commit. It also writes OUT/go.sum, the lines by which other modules know the checksums of
// those that the bridges need.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

const path = "github.com/ndbridge/ndbridge"

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: proxy TREE VERSION OUT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
}

func run(tree, version, out string) error {
	var sums strings.Builder
	for _, folder := range []string{"", "native/linux_amd64", "native/linux_arm64"} {
		if err := write(tree, folder, version, out); err != nil {
			return err
		}
		if err := sum(&sums, folder, version, out); err != nil {
			return err
		}
	}
	bridges, err := filepath.Glob(filepath.Join(tree, "bridges/*/go.mod"))
	if err != nil {
		return err
	}
	for _, mod := range bridges {
		if err := write(tree, filepath.Join("bridges", filepath.Base(filepath.Dir(mod))), version, out); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(out, "go.sum"), []byte(sums.String()), 0o644) //nolint:gosec // for everybody to read
}

// sum writes the lines of go.sum about a module that was written.
func sum(w io.Writer, folder, version, out string) error {
	name := filepath.Join(path, folder)
	file := filepath.Join(out, name, "@v", version)
	all, err := dirhash.HashZip(file+".zip", dirhash.DefaultHash)
	if err != nil {
		return err
	}
	mod, err := dirhash.DefaultHash([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return os.Open(file + ".mod") })
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s %s %s\n%[1]s %[2]s/go.mod %[4]s\n", name, version, all, mod)
	return err
}

// write writes the module of a folder.
func write(tree, folder, version, out string) error {
	m := module.Version{Path: filepath.Join(path, folder), Version: version}
	dir := filepath.Join(out, m.Path, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for everybody to read
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Unix(0, 0).UTC()})
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(tree, folder, "go.mod"))
	if err != nil {
		return err
	}
	files, err := list(filepath.Join(tree, folder))
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := zip.Create(&archive, m, files); err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"list": []byte(version + "\n"), version + ".info": info, version + ".mod": mod, version + ".zip": archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil { //nolint:gosec // as the folder
			return err
		}
	}
	return nil
}

// list lists the files of a module: those of git's index, without modules below it.
func list(dir string) ([]zip.File, error) {
	out, err := exec.Command("git", "-C", dir, "ls-files", "-z").Output() //nolint:noctx // it ends by itself
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	nested := make(map[string]bool)
	names := bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0})
	for _, name := range names {
		if folder, file := filepath.Split(string(name)); file == "go.mod" && folder != "" {
			nested[filepath.Clean(folder)] = true
		}
	}
	var files []zip.File
	for _, name := range names {
		if !within(string(name), nested) {
			files = append(files, file{filepath.Join(dir, string(name)), string(name)})
		}
	}
	if len(files) == 0 {
		return nil, errors.New(dir + " has no files")
	}
	return files, nil
}

// within reports whether a file lies in one of some folders.
func within(name string, folders map[string]bool) bool {
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if folders[dir] {
			return true
		}
	}
	return false
}

// file is a file of a module.
type file struct{ path, name string }

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (os.FileInfo, error)  { return os.Lstat(f.path) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(f.path) }
