package dali

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

type rule = program.Rule[facts]

// The file of DALI that shows most quirks.
const backend = "dali/python/backend_impl.cc"

// table has the rules in the order in which they edit a plan: first those that refuse, then the one
// about batches, then those about how __dlpack__ is called.
func table() program.Table[facts] {
	return program.NewTable("dali", refusals(), corrections())
}

func refusals() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "dali.dynamic-batch", Effect: contract.EffectRefuse,
				Summary:  "the batches of the dynamic mode speak no protocol",
				Remedy:   "name one sample: {array}.tensors[0]",
				Upstream: "nvidia/dali/experimental/dynamic/_batch.py",
			},
			When: func(f *facts) bool { return f.kind == lazyBatch },
			Edit: refuse(core.ErrUnsupported, "a batch is not one array"),
		}, {
			Quirk: contract.Quirk{
				ID: "dali.dynamic-tensor-before-2", Until: "2.0.0", Effect: contract.EffectRefuse,
				Summary:  "the tensors of the dynamic mode on the CPU have nothing but __array__",
				Remedy:   "publish numpy.asarray({array})",
				Upstream: "nvidia/dali/experimental/dynamic/_tensor.py",
			},
			When: func(f *facts) bool { return f.kind == lazyTensor },
			Edit: refuse(core.ErrUnsupported, "a tensor of the dynamic mode has no protocol in this version"),
		}, {
			Quirk: contract.Quirk{
				ID: "dali.ragged-batch", Effect: contract.EffectRefuse,
				Summary: "a batch whose samples differ in shape, or lie apart, is not one array: as_tensor " +
					"raises a RuntimeError, and as_array copies if it can",
				Remedy:   "name one sample: {array}[0]",
				Upstream: backend,
			},
			When: func(f *facts) bool { return f.kind == batch && !f.dense },
			Edit: refuse(core.ErrLayout, "the samples of the batch differ in shape, or are not in one piece of memory"),
		}, {
			Quirk: contract.Quirk{
				ID: "dali.enumerations", Effect: contract.EffectRefuse,
				Summary:  "no protocol exports elements that are members of DALI's enumerations",
				Remedy:   "cast them in the pipeline: fn.cast(x, dtype=types.INT32)",
				Upstream: backend,
			},
			When: func(f *facts) bool { return !f.isNumber() },
			Edit: func(p *program.Plan, f *facts) {
				p.Refusef(core.ErrDType, "the elements are of DALI's type %s, not numbers", f.dtype)
			},
		},
	}
}

func refuse(kind error, why string) func(*program.Plan, *facts) {
	return func(p *program.Plan, _ *facts) { p.Refusef(kind, "%s", why) }
}

func corrections() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "dali.batches", Effect: contract.EffectReroute,
				Summary: "what a pipeline gives for an output speaks no protocol, but in one piece it has a " +
					"tensor for all samples",
				Upstream: backend,
			},
			When: func(f *facts) bool { return f.kind == batch && f.dense },
			Edit: func(p *program.Plan, _ *facts) {
				p.Through = append(p.Through, program.MethodCall{Name: "as_tensor"})
			},
		}, {
			Quirk: contract.Quirk{
				ID: "dali.kwargs-before-2.2", Until: "2.2.0", Effect: contract.EffectCorrect,
				Protocol: string(program.DLPack),
				Summary:  "__dlpack__ does not know the keywords max_version and copy",
				Upstream: backend,
			},
			When: func(f *facts) bool { return f.kind != lazyTensor },
			Edit: program.WithoutKeywords[facts],
		}, {
			Quirk: contract.Quirk{
				ID: "dali.dynamic-no-kwargs", Since: "2.0.0", Effect: contract.EffectCorrect, Protocol: string(program.DLPack),
				Summary:  "__dlpack__ of the dynamic mode's tensors does not know the keywords max_version and copy",
				Upstream: "nvidia/dali/experimental/dynamic/_tensor.py",
			},
			When: func(f *facts) bool { return f.kind == lazyTensor },
			Edit: program.WithoutKeywords[facts],
		},
	}
}
