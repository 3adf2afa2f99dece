package rules

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const ours = "github.com/ndbridge/ndbridge/"

// TestPublicPackagesNameNoInternalType looks at all that others can import, in all modules: who uses it must be able to write
// down each type that they meet, and to read about it. It reads the source, with a GPU and without, and builds nothing.
func TestPublicPackagesNameNoInternalType(t *testing.T) {
	t.Parallel()
	found := make(map[string]bool)
	for _, tags := range []string{"", "cuda"} {
		known := imports{"unsafe": types.Unsafe}
		for _, file := range sources(t, "go.mod", "*/go.mod") {
			for _, p := range public(t, path.Join(root, path.Dir(file)), tags, known) {
				look(p, found)
			}
		}
	}
	for line := range found {
		t.Error(line)
	}
}

// TestInternalTypesAreFound: the rule sees internal types wherever they can stand.
func TestInternalTypesAreFound(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	known := imports{}
	for _, p := range []struct{ name, text string }{
		{"internal/a", `package a; type T struct{}; type I interface{ M() }`},
		{"b", `package b
			import "github.com/ndbridge/ndbridge/internal/a"
			type Alias = a.T
			type Const[P a.I] struct{}
			type Embedded struct{ a.T }
			type Field struct{ F map[string][]*a.T }
			type Interface interface{ M(chan a.T) }
			type Is interface{ a.I }
			type Method struct{ t a.T; u method }
			func (Method) M() func(a.T) { return nil }
			type method struct{}
			func (method) M() a.T { panic(0) }
			func Result() (int, *method) { return 0, nil }
			var Var, none = []a.T{}, a.T{}
			func private(a.T) {}
			type Clean struct{ t a.T }
			func (Clean) m(a.T) {}`},
	} {
		file, err := parser.ParseFile(fset, p.name, p.text, 0)
		if err != nil {
			t.Fatal(err)
		}
		config := types.Config{Importer: importMap{imports: known}}
		if known[ours+p.name], err = config.Check(ours+p.name, fset, []*ast.File{file}, nil); err != nil {
			t.Fatal(err)
		}
	}
	found := make(map[string]bool)
	look(known[ours+"b"], found)
	want := []string{
		"b.Alias names internal/a.T", "b.Const names internal/a.I", "b.Embedded.T names internal/a.T", "b.Field.F names internal/a.T",
		"b.Interface.M names internal/a.T", "b.Is names internal/a.I", "b.Method.M names internal/a.T", "b.Result.M names internal/a.T",
		"b.Var names internal/a.T",
	}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// public reads the packages of a module that others can import and that are not known yet, and what they import.
func public(t *testing.T, dir, tags string, known imports) (all []*types.Package) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-tags", tags, "-deps", "-json=ImportPath,Dir,Name,GoFiles,CgoFiles,ImportMap", "./...")
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "CGO_ENABLED=1"), t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	fset := token.NewFileSet()
	for list := json.NewDecoder(strings.NewReader(string(out))); ; { // what is imported comes first
		var p struct {
			ImportPath, Dir, Name string
			GoFiles, CgoFiles     []string
			ImportMap             map[string]string
		}
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if known[p.ImportPath] != nil {
			continue
		}
		var files []*ast.File
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		config := types.Config{
			Importer: importMap{known, p.ImportMap}, IgnoreFuncBodies: true, FakeImportC: true,
			Error: func(error) {}, // what it could not read is seen where it is looked at
		}
		read, _ := config.Check(p.ImportPath, fset, files, nil)
		known[p.ImportPath] = read
		if strings.HasPrefix(p.ImportPath, ours) && p.Name != "main" && !internal(read) {
			all = append(all, read)
		}
	}
}

// imports are the packages that have been read.
type imports map[string]*types.Package

// importMap finds them for a package of the standard library, which has copies of others.
type importMap struct {
	imports
	copies map[string]string
}

// Import implements types.Importer.
func (m importMap) Import(name string) (*types.Package, error) {
	if other := m.copies[name]; other != "" {
		name = other
	}
	if p := m.imports[name]; p != nil {
		return p, nil
	}
	return nil, errors.New("not read: " + name)
}

// internal reports whether a package is for this repository alone.
func internal(p *types.Package) bool {
	return p != nil && strings.HasPrefix(p.Path(), ours) &&
		slices.ContainsFunc(strings.Split(p.Path(), "/"), func(s string) bool { return s == "internal" || s == "test" })
}

// look looks at all that a package exports.
func look(p *types.Package, found map[string]bool) {
	s := surface{found: found, seen: make(map[types.Type]bool)}
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if _, isConst := o.(*types.Const); !o.Exported() || isConst && o.Type() == types.Typ[types.Invalid] { // a number of C's
			continue
		}
		at := strings.TrimPrefix(p.Path(), ours) + "." + name
		if t, ok := o.Type().(*types.Named); ok && t.Obj() == o {
			s.members(t, at)
		} else {
			s.mention(o.Type(), at)
		}
	}
}

// surface collects where what a package exports names internal types.
type surface struct {
	found map[string]bool
	seen  map[types.Type]bool
}

// members looks at what can be reached through a value of a type.
func (s *surface) members(t *types.Named, at string) {
	s.parameters(t.TypeParams(), at)
	s.mention(t.Underlying(), at)
	for m := range t.Methods() {
		if m.Exported() {
			s.mention(m.Type(), at+"."+m.Name())
		}
	}
}

func (s *surface) parameters(list *types.TypeParamList, at string) {
	for p := range list.TypeParams() {
		s.mention(p.Constraint(), at)
	}
}

func (s *surface) mention(t types.Type, at string) {
	switch t := t.(type) {
	case *types.Basic:
		if t.Kind() == types.Invalid {
			s.found[at+" has a type that cannot be read"] = true
		}
	case *types.Alias:
		s.mention(t.Rhs(), at)
	case *types.Named:
		s.named(t, at)
	case *types.Map:
		s.mention(t.Key(), at)
		s.mention(t.Elem(), at)
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		s.mention(t.Elem(), at)
	case *types.Signature:
		s.parameters(t.TypeParams(), at)
		s.mention(t.Params(), at)
		s.mention(t.Results(), at)
	case *types.Tuple:
		for v := range t.Variables() {
			s.mention(v.Type(), at)
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() {
				s.mention(f.Type(), at+"."+f.Name())
			}
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			if m.Exported() {
				s.mention(m.Type(), at+"."+m.Name())
			}
		}
		for e := range t.EmbeddedTypes() {
			s.mention(e, at)
		}
	case *types.Union:
		for term := range t.Terms() {
			s.mention(term.Type(), at)
		}
	}
}

func (s *surface) named(t *types.Named, at string) {
	for a := range t.TypeArgs().Types() {
		s.mention(a, at)
	}
	switch o := t.Obj(); {
	case internal(o.Pkg()):
		s.found[at+" names "+strings.TrimPrefix(o.Pkg().Path(), ours)+"."+o.Name()] = true
	case !o.Exported() && o.Pkg() != nil && !s.seen[t]: // its members are reached all the same
		s.seen[t] = true
		s.members(t, at)
	}
}
