package torch

import (
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

type rule = program.Rule[tensor]

// table has the rules in the order in which they edit a plan: first those that refuse, then those
// that make another tensor of it, then those about how it is asked.
func table() program.Table[tensor] {
	return program.NewTable("torch", otherMemory(), otherElements(), dtypes(), corrections(), importing())
}

const dlconvertor = "aten/src/ATen/DLConvertor.cpp"

// otherMemory refuses tensors that are not in strided memory.
func otherMemory() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "torch.layouts", Effect: contract.EffectRefuse,
				Summary: "sparse, oneDNN and nested tensors are not strided memory; DLPack refuses each " +
					"kind with a different error",
				Remedy: "publish t.to_dense(), or the parts: t.values(), t.indices(), " +
					"the tensors of t.unbind()",
				Upstream: "torch/_tensor.py, aten/src/ATen/NestedTensorImpl.cpp",
			},
			When: func(t *tensor) bool { return t.layout != "strided" || t.nested },
			Edit: func(p *program.Plan, t *tensor) {
				kind := t.layout
				if t.nested {
					kind = "nested"
				}
				p.Refusef(core.ErrLayout, "the tensor is %s, not strided memory", kind)
			},
		}, {
			Quirk: contract.Quirk{
				ID: "torch.no-data", Effect: contract.EffectRefuse,
				Summary: "fake, zero and wrapped tensors, and those whose storage was given up, are exported " +
					"with a NULL pointer; meta tensors and those of a running transform are refused",
				Remedy: "publish a tensor that holds data: the one that is wrapped, or a clone on the CPU",
				Upstream: "torch/_subclasses/fake_tensor.py, " +
					"aten/src/ATen/functorch/BatchedTensorImpl.cpp",
			},
			When: func(t *tensor) bool { return t.noData },
			Edit: func(p *program.Plan, t *tensor) {
				p.Refusef(core.ErrPointer, "the %s has no memory of its own", t.class)
			},
		},
	}
}

// otherElements refuses tensors whose memory holds something else than their elements.
func otherElements() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "torch.conj-bit", Since: "1.10.0", Effect: contract.EffectRefuse,
				Summary: "conj() only sets a bit: the memory holds the conjugates of the elements; __dlpack__ " +
					"refuses such tensors, DLPack from C does not",
				Remedy:   "publish t.resolve_conj(), which is a copy",
				Upstream: "torch/_tensor.py",
			},
			When: func(t *tensor) bool { return t.conj },
			Edit: func(p *program.Plan, _ *tensor) {
				p.Refusef(core.ErrUnsupported, "the elements are the conjugates of those in memory")
			},
		}, {
			Quirk: contract.Quirk{
				ID: "torch.neg-bit-silent", Since: "1.10.0", Effect: contract.EffectRefuse,
				Summary: "the imaginary part of a lazy conjugate only has a bit that says that the memory " +
					"holds the negatives of the elements; DLPack exports them silently",
				Remedy:   "publish t.resolve_neg(), which is a copy",
				Upstream: dlconvertor,
			},
			When: func(t *tensor) bool { return t.neg },
			Edit: func(p *program.Plan, _ *tensor) {
				p.Refusef(core.ErrUnsupported, "the elements are the negatives of those in memory")
			},
		}, {
			Quirk: contract.Quirk{
				ID: "torch.quantized-and-bits", Effect: contract.EffectRefuse,
				Summary: "the elements of quantized tensors mean something only together with a scale and a " +
					"zero point, and the bit types mean nothing at all",
				Remedy:   "publish t.int_repr() or t.dequantize(), or t.view(torch.uint8) of a bit type",
				Upstream: dlconvertor,
			},
			When: func(t *tensor) bool {
				return strings.HasPrefix(t.dtype, "q") || strings.HasPrefix(t.dtype, "bits")
			},
			Edit: func(p *program.Plan, t *tensor) {
				p.Refusef(core.ErrDType, "the elements are %s", t.dtype)
			},
		},
	}
}

// dtypes corrects the types that DLPack lacks, or names wrongly.
func dtypes() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "torch.bool-before-2.2", Until: "2.2.0", Effect: contract.EffectCorrect,
				Protocol: string(program.DLPack),
				Summary:  "DLPack refuses bool",
				Upstream: "pytorch issues 67081 and 94463, pull request 114673",
			},
			When: func(t *tensor) bool { return t.dtype == "bool" },
			Edit: asBytes,
		}, {
			Quirk: contract.Quirk{
				ID: "torch.small-floats-before-2.10", Since: "2.1.0", Until: "2.10.0", Effect: contract.EffectCorrect,
				Protocol: string(program.DLPack),
				Summary:  "DLPack refuses the floats of 8 bits, and the pairs of floats of 4",
				Upstream: dlconvertor,
			},
			When: func(t *tensor) bool {
				return strings.HasPrefix(t.dtype, "float8_") || strings.HasPrefix(t.dtype, "float4_")
			},
			Edit: asBytes,
		}, {
			Quirk: contract.Quirk{
				ID: "torch.subbyte-as-bytes", Since: "2.3.0", Effect: contract.EffectCorrect,
				Summary: "the integers of 1 to 7 bits take a byte each, and DLPack says that they are " +
					"integers of 8 bits",
				Remedy:   "read the elements as bytes: their type is said in the tag",
				Upstream: dlconvertor,
			},
			When: isSubByte,
			Edit: func(p *program.Plan, t *tensor) {
				p.DType, _ = core.Opaque(1)
				p.Tag = t.dtype
			},
		},
	}
}

// isSubByte tells the integers of 1 to 7 bits: "int4", "uint1".
func isSubByte(t *tensor) bool {
	bits, isInt := strings.CutPrefix(strings.TrimPrefix(t.dtype, "u"), "int")
	return isInt && len(bits) == 1 && bits < "8"
}

// asBytes has elements of a byte each exported as uint8, and gives them their name back.
func asBytes(p *program.Plan, t *tensor) {
	p.Through = append(p.Through, program.MethodCall{Name: "view", Args: []py.Object{t.uint8}})
	d, err := core.ParseDType(strings.Replace(t.dtype, "_x2", "x2", 1))
	if err != nil {
		d, _ = core.Opaque(1)
		p.Tag = t.dtype
	}
	p.DType = d
}

// corrections is about how a tensor is asked.
func corrections() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "torch.requires-grad", Effect: contract.EffectCorrect, Choices: []string{"detach", "refuse"},
				Summary: "__dlpack__ refuses tensors that require a gradient, and with them the parameters " +
					"of every model; autograd does not see what others write into their memory",
				Remedy:   "publish t.detach()",
				Upstream: "torch/_tensor.py",
			},
			When: func(t *tensor) bool { return t.requiresGrad },
			Edit: func(p *program.Plan, t *tensor) {
				p.Through = append(p.Through, program.MethodCall{Name: "detach"})
				t.requiresGrad = false
			},
			Instead: map[string]func(*program.Plan, *tensor){"refuse": func(p *program.Plan, _ *tensor) {
				p.Refusef(core.ErrUnsupported, "the tensor requires a gradient, and the configuration says no to those")
			}},
		}, {
			Quirk: contract.Quirk{
				ID: "torch.exchange-unchecked", Since: "2.10.0", Effect: contract.EffectReroute,
				Protocol: string(program.Exchange),
				Summary: "DLPack from C exports also what __dlpack__ refuses: tensors that require a " +
					"gradient, and lazy conjugates, whose memory holds other numbers",
				Upstream: dlconvertor + ", torch/csrc/Module.cpp",
			},
			When: func(t *tensor) bool { return t.requiresGrad || t.conj },
			Edit: func(p *program.Plan, _ *tensor) { p.Without(program.Exchange) },
		}, {
			Quirk: contract.Quirk{
				ID: "torch.kwargs-before-2.9", Until: "2.9.0", Effect: contract.EffectCorrect,
				Protocol: string(program.DLPack),
				Summary:  "__dlpack__ does not know the keywords max_version, dl_device and copy",
				Upstream: "pytorch pull request 145000",
			},
			Edit: program.WithoutKeywords[tensor],
		}, {
			Quirk: contract.Quirk{
				ID: "torch.cpu-stream", Since: "2.9.0", Until: "2.10.0", Effect: contract.EffectCorrect,
				Protocol: string(program.DLPack),
				Summary:  "__dlpack__ of a tensor on the CPU takes no stream but None: -1 is an error as well",
				Upstream: "pytorch pull requests 145000 and 163242",
			},
			Edit: program.WithoutStream[tensor],
		},
	}
}

// What is done about read-only memory of a host.
const (
	idReadOnlyMemory = core.QuirkID("torch.no-readonly-memory")
	readOnlyRemedy   = "let the function write to the memory, or hand over a copy"

	copyReadOnly, shareReadOnly, refuseReadOnly = "copy", "writable", "refuse"
)

func readOnlyEffects() []string { return []string{copyReadOnly, shareReadOnly, refuseReadOnly} }

// importing is about tensors of a host's memory, which [adapter.Import] makes.
func importing() []rule {
	return []rule{{
		Quirk: contract.Quirk{
			ID: idReadOnlyMemory, Effect: contract.EffectStage, Choices: readOnlyEffects(),
			Summary: "a tensor does not know that its memory is read-only: a function that writes to a tensor of a " +
				"host's read-only memory ends the program, with SIGSEGV",
			Remedy:   readOnlyRemedy,
			Upstream: "torch/utils/dlpack.py; pytorch issue 46741",
		},
	}}
}
