package hostplugin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// evalContext holds what expressions in a configuration may call. There are no variables.
func evalContext() *hcl.EvalContext {
	return &hcl.EvalContext{Functions: map[string]function.Function{
		"env":        envFunction(),
		"pathexpand": pathExpandFunction(),
		"concat":     stdlib.ConcatFunc,
		"format":     stdlib.FormatFunc,
		"join":       stdlib.JoinFunc,
		"lower":      stdlib.LowerFunc,
		"merge":      stdlib.MergeFunc,
		"replace":    stdlib.ReplaceFunc,
		"split":      stdlib.SplitFunc,
		"trimspace":  stdlib.TrimSpaceFunc,
		"upper":      stdlib.UpperFunc,
	}}
}

// envFunction makes env(NAME) and env(NAME, default). A variable that is not set and has no default
// is a mistake: an empty string in a path would go unnoticed until much later.
func envFunction() function.Function {
	return function.New(&function.Spec{
		Description: "The value of an environment variable of the host.",
		Params:      []function.Parameter{{Name: "name", Type: cty.String}},
		VarParam:    &function.Parameter{Name: "default", Type: cty.String},
		Type:        function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if len(args) > 2 {
				return cty.NilVal, function.NewArgErrorf(2, "env takes a name and at most one default")
			}
			name := args[0].AsString()
			if v, ok := os.LookupEnv(name); ok {
				return cty.StringVal(v), nil
			}
			if len(args) == 2 {
				return args[1], nil
			}
			return cty.NilVal, function.NewArgErrorf(0,
				"the environment variable %s is not set; set it, or give a default: env(%q, \"...\")", name, name)
		},
	})
}

// pathExpandFunction makes pathexpand(PATH), which replaces a leading "~" by the user's home.
func pathExpandFunction() function.Function {
	return function.New(&function.Spec{
		Description: "The path with a leading ~ replaced by the user's home directory.",
		Params:      []function.Parameter{{Name: "path", Type: cty.String}},
		Type:        function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path := args[0].AsString()
			rest, ok := strings.CutPrefix(path, "~")
			if !ok || (rest != "" && !strings.HasPrefix(rest, "/")) {
				return args[0], nil
			}
			home, err := os.UserHomeDir()
			if err != nil {
				return cty.NilVal, fmt.Errorf("the home directory is unknown: %w", err)
			}
			return cty.StringVal(filepath.Join(home, rest)), nil
		},
	})
}
