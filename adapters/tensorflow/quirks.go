package tensorflow

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

type rule = program.Rule[tensor]

// The files of TensorFlow that show most quirks.
const (
	opsPy    = "tensorflow/python/framework/ops.py"
	dlpackCC = "tensorflow/c/eager/dlpack.cc"
)

// table has the rules in the order in which they edit a plan: first those that refuse, then the one
// about variables, then those about how __dlpack__ is called.
func table() program.Table[tensor] {
	return program.NewTable("tensorflow", refusals(), corrections())
}

func refusals() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "tensorflow.not-eager", Effect: contract.EffectRefuse,
				Summary:  "symbolic, sparse and ragged tensors speak no protocol",
				Remedy:   "publish a tensor that has elements in one place",
				Upstream: opsPy,
			},
			When: func(t *tensor) bool { return t.kind == symbolic || t.kind == sparse || t.kind == ragged },
			Edit: refuseKind,
		}, {
			Quirk: contract.Quirk{
				ID: "tensorflow.string-aborts-process", Effect: contract.EffectRefuse,
				Summary: "__dlpack__ of a tensor of strings or handles ends the process: Check failed: " +
					"DataTypeCanUseMemcpy",
				Remedy:   "publish {array}.numpy().astype('S') for text",
				Upstream: dlpackCC,
			},
			When: func(t *tensor) bool { return !t.hasMemory() },
			Edit: refuseType("the elements are of type %s, which are objects of the process"),
		}, {
			Quirk: contract.Quirk{
				ID: "tensorflow.small-ints", Effect: contract.EffectRefuse, Protocol: string(program.DLPack),
				Summary:  "DLPack refuses quantized numbers and integers of less than a byte",
				Remedy:   "publish tf.bitcast({array}, tf.int8), or tf.cast of it",
				Upstream: dlpackCC,
			},
			When: (*tensor).isPacked,
			Edit: refuseType("TensorFlow does not export %s"),
		},
	}
}

func refuseType(format string) func(*program.Plan, *tensor) {
	return func(p *program.Plan, t *tensor) { p.Refusef(core.ErrDType, format, t.dtype) }
}

// refuseKind says what to publish in the object's place.
func refuseKind(p *program.Plan, t *tensor) {
	var why, remedy string
	switch t.kind {
	case sparse:
		why, remedy = "holds indices and values", "name one part: {array}.values; or publish tf.sparse.to_dense({array})"
	case ragged:
		why, remedy = "has rows of different lengths", "name one part: {array}.flat_values; or publish {array}.to_tensor()"
	default:
		why, remedy = "stands for a tensor that does not exist yet", "publish what the function returns"
	}
	p.Refusef(core.ErrUnsupported, "the %s %s", t.class, why)
	p.Refuse.Remedy = remedy
}

func corrections() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "tensorflow.variables", Effect: contract.EffectReroute,
				Summary:  "a variable, TensorFlow's or Keras', speaks no protocol; its value is a tensor over the same memory",
				Upstream: "tensorflow/python/ops/resource_variable_ops.py",
			},
			When: func(t *tensor) bool { return t.kind == variable || t.kind == kerasVariable },
			Edit: func(p *program.Plan, t *tensor) {
				if t.kind == kerasVariable {
					p.Through = append(p.Through, program.MethodCall{Name: "_value", Attribute: true})
				}
				p.Through = append(p.Through, program.MethodCall{Name: "value"})
			},
		}, {
			Quirk: contract.Quirk{
				ID: "tensorflow.stream-none-only", Effect: contract.EffectCorrect, Protocol: string(program.DLPack),
				Summary:  "__dlpack__ takes no stream but None: -1 is an error as well, of a tensor on a GPU too",
				Upstream: opsPy,
			},
			Edit: program.WithoutStream[tensor],
		}, {
			Quirk: contract.Quirk{
				ID: "tensorflow.legacy-capsule-only", Effect: contract.EffectCorrect, Protocol: string(program.DLPack),
				Summary: "max_version is accepted and ignored: the capsule is the unversioned one, in which " +
					"nothing says that the tensor is immutable",
				Upstream: opsPy + ", " + dlpackCC,
			},
			Edit: program.UnsignedReadOnly[tensor],
		},
	}
}
