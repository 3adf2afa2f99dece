package programtest

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core/contract"
)

// tell puts into the output of `go test -json` how much of what a test has checked in this program, and
// which versions it has met: `make matrix` makes its table of that.
func (p *Program) tell(tb testing.TB, framework, what string, count int) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), Patience)
	defer cancel()
	info, err := p.Info(ctx)
	check(tb, err)
	i := slices.IndexFunc(info.Frameworks, func(f contract.Framework) bool { return f.Name == framework })
	if i < 0 {
		tb.Fatalf("the frameworks are %+v, and none is %s", info.Frameworks, framework)
	}
	python, _, _ := strings.Cut(info.Interpreter, " (") // not where it lies
	tb.Attr("python", python)
	tb.Attr("version", info.Frameworks[i].Version)
	tb.Attr(what, strconv.Itoa(count))
}
