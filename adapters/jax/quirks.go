package jax

import (
	"fmt"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

type rule = program.Rule[array]

// table has the rules in the order in which they edit a plan: first those that refuse what has no
// memory to look at, then those about element types, then those about how __dlpack__ is called.
func table() program.Table[array] {
	return program.NewTable("jax", absences(), dtypes(), calls())
}

// The files of JAX and XLA that show most quirks.
const (
	dlpackPy   = "jax/_src/dlpack.py"
	dlpackCC   = "jaxlib/dlpack.cc"
	arrayPy    = "jax/_src/array.py"
	typesOfXLA = "xla/python/dlpack_types.cc"
)

// givenAway is the quirk of arrays that have no memory any more.
const givenAway = "jax.deleted-or-donated"

func absences() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "jax.tracer", Effect: contract.EffectRefuse,
				Summary: "inside of jit, grad and vmap a tracer stands for the array: it has no memory, " +
					"and its __dlpack__ raises",
				Remedy: "publish what the transformed function returns, or publish from within it by " +
					"jax.debug.callback",
				Upstream: "jax/_src/core.py",
			},
			When: func(a *array) bool { return a.kind == tracer },
			Edit: refuse(core.ErrUnsupported, func(a *array) string {
				return "the " + a.class + " stands for an array that does not exist yet"
			}),
		}, {
			Quirk: contract.Quirk{
				ID: "jax.not-arrays", Effect: contract.EffectRefuse,
				Summary: "arrays of typed random keys, references and shapes have no __dlpack__, whatever " +
					"else they have in common with arrays",
				Remedy:   "publish jax.random.key_data(keys), ref[...], or an array of that shape",
				Upstream: "jax/_src/prng.py, jax/_src/core.py",
			},
			When: func(a *array) bool { return a.kind == key || a.kind == spec || a.kind == ref },
			Edit: refuseNoArray,
		}, {
			Quirk: contract.Quirk{
				ID: givenAway, Effect: contract.EffectRefuse,
				Summary: "if an array was deleted, or donated to a function, DLPack raises an error that says " +
					"that an object of type 'NoneType' has no len()",
				Remedy: "publish the array that took its place, or a copy from before; or do not donate it " +
					"(donate_argnums)",
				Upstream: arrayPy + ", jax issue 4636",
			},
			When: func(a *array) bool { return a.deleted },
			Edit: func(p *program.Plan, _ *array) { p.Refuse = errGivenAway() },
		}, {
			Quirk: contract.Quirk{
				ID: "jax.multi-device", Effect: contract.EffectRefuse,
				Summary: "an array that is sharded over several devices, or replicated to them, is several " +
					"pieces of memory, and DLPack refuses it",
				Remedy:   "name one shard: {array}.addressable_shards[0].data",
				Upstream: arrayPy + ", " + dlpackCC,
			},
			When: func(a *array) bool { return a.devices > 1 },
			Edit: refuse(core.ErrDevice, func(a *array) string {
				if a.replicated {
					return fmt.Sprintf("the array is replicated to %d devices; each shard is the whole", a.devices)
				}
				return fmt.Sprintf("the array is sharded over %d devices", a.devices)
			}),
		},
	}
}

// refuse refuses for a reason that depends on the array.
func refuse(kind error, why func(*array) string) func(*program.Plan, *array) {
	return func(p *program.Plan, a *array) { p.Refusef(kind, "%s", why(a)) }
}

// refuseNoArray says what to publish in the object's place.
func refuseNoArray(p *program.Plan, a *array) {
	holds, remedy := "random keys, whose form is JAX's own affair", "publish jax.random.key_data({array})"
	switch a.kind { //nolint:exhaustive // keys are said already
	case ref:
		holds, remedy = "a reference, not an array", "publish {array}[...]"
	case spec:
		holds, remedy = "a shape and no elements", "publish an array of that shape"
	}
	p.Refusef(core.ErrUnsupported, "a %s holds %s", a.class, holds)
	p.Refuse.Remedy = remedy
}

func dtypes() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "jax.subbyte-ints", Effect: contract.EffectRefuse, Protocol: string(program.DLPack),
				Summary:  "DLPack refuses the integers of less than a byte",
				Remedy:   "publish {array}.astype(jax.numpy.int8), or uint8",
				Upstream: typesOfXLA,
			},
			When: func(a *array) bool {
				switch a.dtype {
				case "int1", "int2", "int4", "uint1", "uint2", "uint4":
					return true
				default:
					return false
				}
			},
			Edit: refuse(core.ErrDType, noDLPack),
		}, {
			Quirk: contract.Quirk{
				ID: "jax.bool-before-0.4.24", Until: "0.4.24", Effect: contract.EffectCorrect,
				Protocol: string(program.DLPack),
				Summary:  "DLPack says that bool is uint8",
				Upstream: typesOfXLA,
			},
			When: func(a *array) bool { return a.dtype == "bool" },
			Edit: func(p *program.Plan, _ *array) { p.DType = core.Bool },
		}, {
			Quirk: contract.Quirk{
				ID: "jax.float8-before-0.5.3", Until: "0.5.3", Effect: contract.EffectRefuse,
				Protocol: string(program.DLPack),
				Summary:  "DLPack refuses the floating point types of 8 bits",
				Remedy:   "publish {array}.view(jax.numpy.uint8)",
				Upstream: typesOfXLA,
			},
			When: func(a *array) bool { return strings.HasPrefix(a.dtype, "float8_") },
			Edit: refuse(core.ErrDType, noDLPack),
		},
	}
}

func noDLPack(a *array) string { return "this version of JAX does not export " + a.dtype }

func calls() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "jax.stream-minus-one", Effect: contract.EffectCorrect, Protocol: string(program.DLPack),
				Summary: "__dlpack__ does not know the stream -1, which tells a producer to wait for nothing: on a GPU " +
					"it takes it for a stream's handle, which is invalid, and on the CPU it takes no stream but None",
				Upstream: dlpackPy + ", " + dlpackCC + "; NVIDIA/cuda-python issue 285; openxla/xla issue 11535",
			},
			Edit: withRealStream,
		}, {
			Quirk: contract.Quirk{
				ID: "jax.kwargs-before-0.4.27", Until: "0.4.27", Effect: contract.EffectCorrect,
				Protocol: string(program.DLPack),
				Summary:  "__dlpack__ does not know the keywords max_version, dl_device and copy",
				Upstream: "jax pull request 20198",
			},
			Edit: program.WithoutKeywords[array],
		}, {
			Quirk: contract.Quirk{
				ID: "jax.legacy-capsule-only", Until: "0.12.0", Effect: contract.EffectCorrect,
				Protocol: string(program.DLPack),
				Summary: "max_version is accepted and ignored: the capsule is the unversioned one, in which " +
					"nothing says that the array is immutable",
				Upstream: dlpackPy + "; NVIDIA/cuda-python issue 285; jax issue 40789",
			},
			Edit: program.UnsignedReadOnly[array],
		}, {
			Quirk: contract.Quirk{
				ID: "jax.memory-reused", Effect: contract.EffectCorrect, Protocol: string(program.DLPack),
				Summary: "a function to which an array is donated writes its result into the array's memory, " +
					"unless somebody holds what DLPack handed out",
				Upstream: dlpackCC,
			},
			Edit: func(p *program.Plan, _ *array) { p.Hold = true },
		}, {
			Quirk: contract.Quirk{
				ID: "jax.may-be-donated", Effect: contract.EffectStage, Protocol: string(program.DLPack),
				Choices: []string{"copy", "hold"},
				Summary: "on a GPU, a function to which an array is donated raises an error in the program while somebody " +
					"holds what DLPack handed out; so JAX makes a copy of an array that was not published",
				Remedy:   "publish the array, which is held then, or choose the effect hold, where nothing is donated",
				Upstream: "xla/pjrt: Donation requested for buffer with external reference",
			},
			When: func(a *array) bool { return a.gpu != core.Device{} },
			Edit: func(p *program.Plan, a *array) {
				p.Spare = &program.Spare{Copy: a.copy, Describe: a.describe, Reason: contract.ReasonMayBeDonated}
			},
			Instead: map[string]func(*program.Plan, *array){"hold": func(*program.Plan, *array) {}},
		},
	}
}

// withRealStream leaves the stream out on the CPU. On a GPU it passes one that is real: JAX has that wait
// for the very work that makes the array, wherever it was put, so nothing else needs to be waited for.
func withRealStream(p *program.Plan, _ *array) {
	p.DLPack.Stream = nil
	p.DLPack.DeviceStream = program.DeviceStreamAlways
	p.Sync = contract.SyncStream
}
