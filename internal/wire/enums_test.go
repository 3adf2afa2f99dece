package wire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/ndbridge/ndbridge/core"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// TestEnumsAreComplete holds both enumerations of each table to it: every value that package contract
// names, and every value of the protocol, is there exactly once.
func TestEnumsAreComplete(t *testing.T) {
	t.Parallel()
	checkEnum(t, routes(), constants(t, "route.go", "Route"), pb.Route_ROUTE_UNSPECIFIED.Descriptor(), false)
	checkEnum(t, reasons(), constants(t, "route.go", "Reason"), pb.Reason_REASON_UNSPECIFIED.Descriptor(), true)
	checkEnum(t, copyPolicies(), constants(t, "producer.go", "CopyPolicy"), pb.CopyPolicy_COPY_POLICY_UNSPECIFIED.Descriptor(), true)
	checkEnum(t, syncPolicies(), constants(t, "sync.go", "SyncPolicy"), pb.SyncPolicy_SYNC_POLICY_UNSPECIFIED.Descriptor(), true)
	checkEnum(t, effects(), constants(t, "quirk.go", "Effect"), pb.Effect_EFFECT_UNSPECIFIED.Descriptor(), false)
}

// constants reads the values that a file of package contract gives to the constants of a type.
func constants(t *testing.T, file, typ string) (values []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../../core/contract/"+file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		name := ""
		switch t := spec.Type.(type) {
		case *ast.Ident:
			name = t.Name
		case *ast.SelectorExpr:
			name = t.Sel.Name
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && name == typ {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("%s has no constants of type %s", file, typ)
	}
	return values
}

func checkEnum[C ~string, P interface {
	comparable
	protoreflect.Enum
}](t *testing.T, table []pair[C, P], values []string, wire protoreflect.EnumDescriptor, zero bool,
) {
	t.Helper()
	want := wire.Values().Len()
	if zero {
		values = append(values, "") // the unspecified value crosses
	} else {
		want--
	}
	if len(table) != want || len(table) != len(values) {
		t.Errorf("%s: %d values in the table, %d in the protocol, %d in package contract", wire.Name(), len(table), want, len(values))
	}
	for _, value := range values {
		p, err := enumToProto(table, C(value))
		if back, errBack := enumToCore(table, p); err != nil || errBack != nil || back != C(value) {
			t.Errorf("%s: %q crosses as %v, %v and comes back as %q, %v", wire.Name(), value, p, err, back, errBack)
		}
	}
	if p, err := enumToProto(table, "no such value"); err == nil {
		t.Errorf("%s: an unknown value crosses as %v", wire.Name(), p)
	}
}

func TestDeviceKindsAreComplete(t *testing.T) {
	t.Parallel()
	table := deviceKinds()
	if want := pb.DeviceKind_DEVICE_KIND_UNSPECIFIED.Descriptor().Values().Len() - 1; len(table) != want {
		t.Errorf("%d kinds in the table, %d in the protocol", len(table), want)
	}
	for i, p := range table {
		if p.core != core.DeviceKind(i) || int(p.wire) != i+1 {
			t.Errorf("entry %d is %v and %v", i, p.core, p.wire)
		}
	}
	if p, err := enumToProto(table, core.DeviceKind(len(table))); err == nil {
		t.Errorf("an unknown kind crosses as %v", p)
	}
}
