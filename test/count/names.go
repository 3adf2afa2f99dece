package main

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// exported counts what the package in a folder exports: constants, variables, functions, types, and
// the methods declared for exported types. What an interface asks for is part of the interface's type
// and does not count, nor do fields, nor methods that a type has from an embedded one.
func exported(folder string) (n int, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return 0, err
	}
	seen := map[string]bool{} // a name may be declared in one file for each build tag
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return 0, err
		}
		for _, decl := range f.Decls {
			for _, name := range declared(decl) {
				seen[name] = true
			}
		}
	}
	return len(seen), nil
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
func examples(files []file, folder string) (n int, err error) {
	for _, f := range files {
		if !f.isTest() || !f.in(folder) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.name, f.text, parser.ParseComments)
		if err != nil {
			return 0, err
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
	return n, nil
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
