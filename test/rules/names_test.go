package rules

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// exported lists what the package in a folder exports: constants, variables, functions, types, and
// the methods declared for exported types. What an interface asks for is part of the interface's type
// and is not listed, nor do fields, nor methods that a type has from an embedded one.
func exported(t *testing.T, files []file, folder string) (all []string) {
	t.Helper()
	for _, f := range files {
		if path.Dir(f.name) != folder || !f.isGo() || f.isTest() {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.name, f.text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			all = append(all, declared(decl)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all) // a name may be declared in one file for each build tag
}

// declared names what a declaration exports: "NewView", "View.Close".
func declared(decl ast.Decl) (names []string) {
	add := func(receiver string, id *ast.Ident) {
		if id.IsExported() {
			names = append(names, receiver+id.Name)
		}
	}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add("", d.Name)
		} else if t := receiver(d.Recv.List[0].Type); ast.IsExported(t) {
			add(t+".", d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, id := range s.Names {
					add("", id)
				}
			case *ast.TypeSpec:
				add("", s.Name)
			}
		}
	}
	return names
}

// receiver names the type that a method belongs to.
func receiver(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	default:
		return ""
	}
}

// examples counts the examples in and below a folder that have an output, which go test compares, and
// that stand in a file that starts no program and imports no package that does.
func examples(t *testing.T, files []file, folder string) (n int) {
	t.Helper()
	for _, f := range files {
		if !f.isTest() || !f.in(folder) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.name, f.text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if needsPython(parsed) {
			continue
		}
		for _, e := range doc.Examples(parsed) {
			if e.Output != "" || e.EmptyOutput {
				n++
			}
		}
	}
	return n
}

func needsPython(f *ast.File) bool {
	for _, i := range f.Imports {
		p := strings.Trim(i.Path.Value, `"`)
		if p == "os/exec" || strings.HasSuffix(p, "/hostplugin") || strings.HasSuffix(p, "/adapters/kit/py") {
			return true
		}
	}
	return false
}
