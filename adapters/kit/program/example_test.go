package program_test

import (
	"fmt"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// facts is what an adapter finds out about an array before it decides.
type facts struct{ sparse bool }

// A table holds the quirks of a framework: data that documentation, tests and hosts can read, and what each does to the
// plan by which an array is read.
func ExampleNewTable() {
	table := program.NewTable("gridlib", []program.Rule[facts]{
		{
			Quirk: contract.Quirk{ID: "gridlib.sparse", Summary: "sparse grids have no buffer", Effect: contract.EffectRefuse},
			When:  func(f *facts) bool { return f.sparse },
			Edit: func(p *program.Plan, _ *facts) {
				p.Refusef(core.ErrUnsupported, "the grid is sparse")
				p.Refuse.Remedy = "publish {array}.dense()"
			},
		},
		{
			Quirk: contract.Quirk{ID: "gridlib.stream-none-only", Summary: "__dlpack__ takes only stream=None", Effect: contract.EffectCorrect},
			Edit:  program.WithoutStream[facts],
		},
	})
	for _, q := range table.Quirks() {
		fmt.Printf("%s %s: %s\n", q.Framework, q.ID, q.Summary)
	}
	// Output:
	// gridlib gridlib.sparse: sparse grids have no buffer
	// gridlib gridlib.stream-none-only: __dlpack__ takes only stream=None
}

// A plan begins with what the standards say. Quirks take away from it what their framework cannot do.
func ExamplePlan_Without() {
	plan := program.StandardPlan()
	plan.Without(program.DLPack)
	program.WithoutStream(&plan, &facts{})
	fmt.Println(plan.Protocols, plan.DLPack.Stream == nil)
	// Output: [dlpack-exchange cuda-array-interface array-interface buffer] true
}
