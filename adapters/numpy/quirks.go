package numpy

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

type rule = program.Rule[array]

// idReadOnly is also asked for by look.
const idReadOnly core.QuirkID = "numpy.readonly-needs-versioned"

// table has the rules in the order in which they edit a plan: first those that refuse, then
// those that lead to another protocol, then those that change how one is spoken.
func table() program.Table[array] {
	return program.NewTable("numpy", refusals(), reroutesByType(), reroutesByLayout(), corrections())
}

func refusals() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "numpy.object-dtype", Effect: contract.EffectRefuse,
				Summary: "arrays of Python objects, and of variable-width strings, consist of pointers into " +
					"the process; the array interface and the buffer protocol hand them out as they are",
				Remedy:   "convert the array to a numeric or fixed-width type with astype",
				Upstream: "numpy/_core/src/multiarray/dlpack.c, numpy NEP 55",
			},
			When: func(a *array) bool { return a.Pointers },
			Edit: refuse(core.ErrDType, "the elements of dtype %s are pointers into the process"),
		}, {
			Quirk: contract.Quirk{
				ID: "numpy.longdouble", Effect: contract.EffectRefuse,
				Summary: "longdouble and clongdouble are numbers of 80 bits padded to 128, or something else, " +
					"depending on the machine",
				Remedy:   "convert the array with astype(float64) or astype(complex128)",
				Upstream: "numpy/_core/src/multiarray/dlpack.c",
			},
			When: func(a *array) bool {
				return !a.Extension && (a.Kind == 'f' && a.Size > 8 || a.Kind == 'c' && a.Size > 16)
			},
			Edit: refuse(core.ErrDType, "the elements of dtype %s are long doubles"),
		}, {
			Quirk: contract.Quirk{
				ID: "numpy.mask-dropped", Effect: contract.EffectRefuse,
				Summary:  "masked arrays export their data by every protocol, without the mask",
				Remedy:   "publish a.filled(value), or a.data and a.mask as two arrays",
				Upstream: "numpy/ma/core.py has no __dlpack__ and no __array_interface__ of its own",
			},
			When: func(a *array) bool { return a.masked },
			Edit: refuse(core.ErrUnsupported, "some elements, of dtype %s, are masked"),
		},
	}
}

// reroutesByType are about elements that DLPack does not have.
func reroutesByType() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "numpy.scalars-without-dlpack", Effect: contract.EffectReroute, Protocol: string(program.DLPack),
				Until: "2.5.0",
				Summary: "scalars have no __dlpack__, and their array interface describes a temporary copy " +
					"and calls it writable",
				Upstream: "numpy pull request 32029; numpy/_core/src/multiarray/scalartypes.c.src",
			},
			When: func(a *array) bool { return a.scalar },
			Edit: func(p *program.Plan, a *array) {
				useInterface(p, a)
				p.ReadOnly, p.Temporary = true, true
			},
		}, {
			Quirk: contract.Quirk{
				ID: "numpy.extension-dtypes", Effect: contract.EffectReroute, Protocol: string(program.DLPack),
				Summary: "DLPack refuses the dtypes of other packages (bfloat16, float8, int4 of ml_dtypes), " +
					"and the array interface gives several of them one and the same typestr",
				Upstream: "numpy pull request 31256",
			},
			When: func(a *array) bool { return a.Extension },
			Edit: func(p *program.Plan, a *array) {
				useInterface(p, a)
				a.ExtendTo(p)
			},
		}, {
			Quirk: contract.Quirk{
				ID: "numpy.non-numeric-dtypes", Effect: contract.EffectReroute, Protocol: string(program.DLPack),
				Summary:  "DLPack has no dates, text or records; the array interface has, under names of its own",
				Upstream: "numpy/_core/src/multiarray/dlpack.c",
			},
			When: func(a *array) bool { return !a.Numeric() },
			Edit: useInterface,
		}, {
			Quirk: contract.Quirk{
				ID: "numpy.foreign-byte-order", Effect: contract.EffectReroute, Protocol: string(program.DLPack),
				Since:    "1.22.0",
				Summary:  "DLPack has the machine's byte order only; the array interface has both",
				Remedy:   "for typed access, publish a.astype(a.dtype.newbyteorder('='))",
				Upstream: "numpy/_core/src/multiarray/dlpack.c",
			},
			When: func(a *array) bool { return !a.Native },
			Edit: useInterface,
		}, {
			Quirk: contract.Quirk{
				ID: "numpy.bool-before-1.25", Effect: contract.EffectReroute, Protocol: string(program.DLPack),
				Since: "1.22.0", Until: "1.25.0",
				Summary:  "DLPack refuses bool",
				Upstream: "numpy pull request 23111",
			},
			When: func(a *array) bool { return a.Kind == 'b' },
			Edit: useInterface,
		},
	}
}

// reroutesByLayout are about arrays that DLPack cannot describe, whatever their elements.
func reroutesByLayout() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "numpy.stride-not-multiple", Effect: contract.EffectReroute, Protocol: string(program.DLPack),
				Since:    "1.22.0",
				Summary:  "DLPack counts strides in elements, so it refuses a field of a packed record",
				Upstream: "numpy/_core/src/multiarray/dlpack.c",
			},
			When: func(a *array) bool { return a.oddStride },
			Edit: useInterface,
		}, {
			Quirk: contract.Quirk{
				ID: idReadOnly, Effect: contract.EffectReroute, Protocol: string(program.DLPack),
				Since: "1.22.0", Until: "2.1.0",
				Summary:  "capsules of the old kind cannot say that an array is read-only, so DLPack refuses it",
				Upstream: "numpy pull request 26501",
			},
			When: func(a *array) bool { return a.readOnly },
			Edit: useInterface,
		},
	}
}

func corrections() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "numpy.stream-none-only", Effect: contract.EffectCorrect, Protocol: string(program.DLPack),
				Since:    "1.22.0",
				Summary:  "__dlpack__ takes no stream but None: -1 is an error as well",
				Upstream: "numpy/_core/src/multiarray/dlpack.c; NVIDIA/cuda-python issue 473",
			},
			Edit: program.WithoutStream[array],
		}, {
			Quirk: contract.Quirk{
				ID: "numpy.kwargs-before-2.1", Effect: contract.EffectCorrect, Protocol: string(program.DLPack),
				Since: "1.22.0", Until: "2.1.0",
				Summary:  "__dlpack__ does not know the keywords max_version, dl_device and copy",
				Upstream: "numpy pull request 26501",
			},
			Edit: program.WithoutKeywords[array],
		},
	}
}

// useInterface makes the array interface the only protocol. It describes what DLPack cannot say, but
// NumPy's own name for it is better.
func useInterface(p *program.Plan, a *array) {
	p.Protocols = []program.Protocol{program.ArrayInterface}
	p.Tag = a.Name
}

// refuse refuses with a text that mentions the dtype.
func refuse(kind error, format string) func(*program.Plan, *array) {
	return func(p *program.Plan, a *array) { p.Refusef(kind, format, a.Typestr) }
}
