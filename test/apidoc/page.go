package main

import (
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// page is the page of one package in Markdown; links lead to the pages of the others.
type page struct {
	*goPackage

	text  strings.Builder
	known map[string]*goPackage // those that have a page, by import path
	err   error
}

// page gives the text of the package's page.
func (p *goPackage) page(all []*goPackage) (string, error) {
	out := page{goPackage: p, known: make(map[string]*goPackage)}
	for _, other := range all {
		out.known[other.path()] = other
	}
	out.add("# Package ", p.dir, "\n\n```go\nimport \"", p.path(), "\"\n```\n\n")
	out.prose(p.doc.Doc, 2)
	out.values("Constants", p.doc.Consts)
	out.values("Variables", p.doc.Vars)
	if len(p.doc.Funcs) > 0 {
		out.add("## Functions\n\n")
		out.functions(p.doc.Funcs, "### ")
	}
	if len(p.doc.Types) > 0 {
		out.add("## Types\n\n")
	}
	for _, t := range p.doc.Types {
		out.add("### type ", t.Name, " {#", t.Name, "}\n\n")
		out.declaration(t.Decl)
		out.prose(t.Doc, 5)
		out.values("", t.Consts)
		out.values("", t.Vars)
		out.functions(t.Funcs, "#### ")
		out.functions(t.Methods, "#### ")
	}
	return out.text.String(), out.err
}

func (p *page) add(texts ...string) {
	for _, text := range texts {
		p.text.WriteString(text)
	}
}

// prose adds a comment. Its headings begin at a level.
func (p *page) prose(text string, level int) {
	printer := p.doc.Printer()
	printer.HeadingLevel = level
	printer.DocLinkURL = p.link
	p.text.Write(printer.Markdown(p.doc.Parser().Parse(text)))
	p.add("\n")
}

// link says where a name in brackets leads: within the page, to another page, or to the reference of Go's own packages.
func (p *page) link(to *comment.DocLink) string {
	other := p.known[to.ImportPath]
	switch {
	case to.ImportPath == "":
		return "#" + p.anchor(to)
	case other != nil:
		relative, err := filepath.Rel(path.Dir(p.dir), other.dir+".md")
		if err != nil {
			p.err = err
		}
		anchor := other.anchor(to)
		if anchor != "" {
			anchor = "#" + anchor
		}
		return filepath.ToSlash(relative) + anchor
	case strings.HasPrefix(to.ImportPath, module+"/"): // internal: there is only its source
		return "https://" + module + "/tree/main" + strings.TrimPrefix(to.ImportPath, module)
	default:
		return to.DefaultURL("https://pkg.go.dev/")
	}
}

// anchor is the place of a name on the package's page. Fields and methods of interfaces stand with their types.
func (p *goPackage) anchor(to *comment.DocLink) string {
	if to.Recv == "" {
		return to.Name
	}
	for _, t := range p.doc.Types {
		if t.Name == to.Recv && slices.ContainsFunc(t.Methods, func(f *doc.Func) bool { return f.Name == to.Name }) {
			return to.Recv + "." + to.Name
		}
	}
	return to.Recv
}

func (p *page) values(title string, values []*doc.Value) {
	if title != "" && len(values) > 0 {
		p.add("## ", title, "\n\n")
	}
	for _, v := range values {
		for _, name := range v.Names {
			p.add(`<span id="`, name, `"></span>`)
		}
		p.add("\n\n")
		p.declaration(v.Decl)
		p.prose(v.Doc, 5)
	}
}

func (p *page) functions(functions []*doc.Func, heading string) {
	for _, f := range functions {
		name := f.Name
		receiver := ""
		if f.Recv != "" {
			name = strings.TrimPrefix(f.Recv, "*")
			name, _, _ = strings.Cut(name, "[")
			receiver, name = "("+f.Recv+") ", name+"."+f.Name
		}
		p.add(heading, "func ", receiver, f.Name, " {#", name, "}\n\n")
		p.declaration(f.Decl)
		p.prose(f.Doc, 5)
	}
}

// declaration adds what is declared, with the comments inside it and without that before it.
func (p *page) declaration(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		d.Doc, d.Body = nil, nil
	case *ast.GenDecl:
		d.Doc = nil
	}
	p.add("```go\n")
	if err := format.Node(&p.text, p.fset, decl); err != nil {
		p.err = err
	}
	p.add("\n```\n\n")
}
