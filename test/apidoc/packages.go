package main

import (
	"errors"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/ndbridge/ndbridge"

// private are the folders without packages that others may import, besides those whose name says so.
var private = []string{"build", "cmd", "docs", "examples", "internal", "native", "proto", "test", "testdata"}

// goPackage is one package, read from its source.
type goPackage struct {
	dir  string // from the root, with slashes; the import path follows from it
	fset *token.FileSet
	doc  *doc.Package
}

// find reads all packages that others may import, sorted by their folders.
func find(root string) ([]*goPackage, error) {
	var all []*goPackage
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || name == root {
			return err
		}
		if base := entry.Name(); strings.HasPrefix(base, ".") || slices.Contains(private, base) {
			return filepath.SkipDir
		}
		dir, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		p, err := load(root, filepath.ToSlash(dir))
		if p != nil {
			all = append(all, p)
		}
		return err
	})
	slices.SortFunc(all, func(a, b *goPackage) int { return strings.Compare(a.dir, b.dir) })
	return all, err
}

// load reads the package of a folder as a host on Linux with a GPU sees it. It gives nil if there is none, or if it is a
// command or exports nothing.
func load(root, dir string) (*goPackage, error) {
	context := build.Default
	context.GOOS, context.GOARCH, context.CgoEnabled = "linux", "amd64", true
	context.BuildTags = []string{"cuda"}
	info, err := context.ImportDir(filepath.Join(root, dir), 0)
	if _, none := errors.AsType[*build.NoGoError](err); none || (err == nil && info.IsCommand()) {
		return nil, nil //nolint:nilnil // there is nothing to say of such folders
	}
	if err != nil {
		return nil, err
	}
	p := &goPackage{dir: dir, fset: token.NewFileSet()}
	var files []*ast.File
	for _, name := range slices.Concat(info.GoFiles, info.CgoFiles) {
		file, err := parser.ParseFile(p.fset, filepath.Join(info.Dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if p.doc, err = doc.NewFromFiles(p.fset, files, p.path()); err != nil {
		return nil, err
	}
	if len(p.doc.Funcs)+len(p.doc.Types)+len(p.doc.Consts)+len(p.doc.Vars) == 0 {
		return nil, nil //nolint:nilnil // as above
	}
	return p, nil
}

func (p *goPackage) path() string { return path.Join(module, p.dir) }

// forAdapters says that the package is for plugins, and not for hosts.
func (p *goPackage) forAdapters() bool { return strings.HasPrefix(p.dir, "adapters/") }

// list is the text of docs/packages.md.
func list(packages []*goPackage) string {
	var b strings.Builder
	b.WriteString(`<!-- Written by "make generate" from the comments of the packages; edit those. -->
# The Go packages

A program that looks at arrays imports ` + "`hostplugin` and `core`" + `. The others are there for what their lines say. All that a package exports is
in its comments: ` + "`go doc " + module + "/core View`" + `. The documentation site has them as pages.
`)
	table := func(title string, adapters bool) {
		b.WriteString("\n## " + title + "\n\n| package | what it is |\n| --- | --- |\n")
		for _, p := range packages {
			if p.forAdapters() == adapters {
				line := strings.TrimPrefix(p.doc.Synopsis(p.doc.Doc), "Package "+p.doc.Name+" ")
				b.WriteString("| [`" + p.dir + "`](../" + p.dir + ") | " + plain(line) + " |\n")
			}
		}
	}
	table("For hosts", false)
	table("For adapters and plugins", true)
	return b.String()
}

// plain gives a sentence of a comment as Markdown that shows it as it is.
func plain(text string) string {
	return strings.NewReplacer("_", `\_`, "*", `\*`, "<", `\<`, "|", `\|`, "[", "", "]", "").Replace(text)
}
