package pyarrow

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

type rule = program.Rule[array]

// The file of PyArrow that shows most quirks.
const arrayPXI = "python/pyarrow/array.pxi"

// table has the rules in the order in which they edit a plan: first those that refuse what is not
// one array, then those that refuse element types, then the one that leads to something else, then those
// about how __dlpack__ is called.
func table() program.Table[array] {
	return program.NewTable("pyarrow", pieces(), elements(), corrections())
}

func pieces() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "pyarrow.no-arrays", Effect: contract.EffectRefuse,
				Summary:  "tables, record batches and scalars speak no protocol",
				Remedy:   "name one column: {array}[0]",
				Upstream: "python/pyarrow/table.pxi, python/pyarrow/scalar.pxi",
			},
			When: func(a *array) bool { return a.kind == columns || a.kind == scalar },
			Edit: func(p *program.Plan, a *array) {
				p.Refusef(core.ErrUnsupported, "a %s is not an array", a.class)
				if a.kind == scalar {
					p.Refuse.Remedy = "publish numpy.asarray({array}.as_py())"
				}
			},
		}, {
			Quirk: contract.Quirk{
				ID: "pyarrow.chunks", Effect: contract.EffectRefuse,
				Summary:  "a chunked array speaks no protocol; its chunks are arrays, each in a place of its own",
				Remedy:   "name one chunk: {array}.chunks[0]; or publish {array}.combine_chunks(), which is a copy",
				Upstream: "python/pyarrow/table.pxi",
			},
			When: func(a *array) bool { return a.kind == chunked && a.chunks != 1 },
			Edit: func(p *program.Plan, a *array) {
				p.Refusef(core.ErrLayout, "the array is in %d chunks", a.chunks)
			},
		},
	}
}

func elements() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "pyarrow.nulls", Effect: contract.EffectRefuse,
				Summary:  "an array with missing elements has a bitmap beside its data, for which DLPack has no place",
				Remedy:   "publish {array}.drop_null(), or {array}.fill_null(0)",
				Upstream: arrayPXI,
			},
			When: func(a *array) bool { return a.nulls > 0 },
			Edit: func(p *program.Plan, a *array) {
				p.Refusef(core.ErrUnsupported, "%d elements are missing", a.nulls)
			},
		}, {
			Quirk: contract.Quirk{
				ID: "pyarrow.bit-packed-bool", Effect: contract.EffectRefuse,
				Summary:  "truth values are bits, eight in a byte, which DLPack refuses",
				Remedy:   "publish {array}.cast('uint8')",
				Upstream: arrayPXI,
			},
			When: func(a *array) bool { return a.isArray() && a.dtype == "bool" },
			Edit: func(p *program.Plan, _ *array) {
				p.Refusef(core.ErrDType, "eight truth values share a byte")
			},
		}, {
			Quirk: contract.Quirk{
				ID: "pyarrow.other-types", Effect: contract.EffectRefuse,
				Summary:  "text, lists, dates, decimals and all else that is no plain number have no DLPack type",
				Remedy:   "publish {array}.to_numpy(zero_copy_only=False), or a part of it: {array}.buffers()[1]",
				Upstream: arrayPXI,
			},
			When: func(a *array) bool { return a.isArray() && !a.isNumber() },
			Edit: func(p *program.Plan, a *array) {
				p.Refusef(core.ErrDType, "the elements are of type %s", a.dtype)
				if a.isTime() {
					p.Refuse.Remedy = "publish {array}.view('int64'), or 'int32', over the same memory"
				}
			},
		},
	}
}

func corrections() []rule {
	return []rule{
		{
			Quirk: contract.Quirk{
				ID: "pyarrow.one-chunk", Effect: contract.EffectReroute,
				Summary:  "a chunked array speaks no protocol, even where its only chunk is all of it",
				Upstream: "python/pyarrow/table.pxi",
			},
			When: func(a *array) bool { return a.kind == chunked && a.chunks == 1 },
			Edit: func(p *program.Plan, a *array) {
				p.Through = append(p.Through, program.MethodCall{Name: "chunk", Args: []py.Object{a.first}})
			},
		}, {
			Quirk: contract.Quirk{
				ID: "pyarrow.resized-buffer", Effect: contract.EffectCorrect, Protocol: string(program.Buffer),
				Summary:  "a buffer that was resized describes itself with the extent that it was made with; its length is right",
				Upstream: "python/pyarrow/io.pxi",
			},
			When: func(a *array) bool { return a.kind == buffer },
			Edit: func(p *program.Plan, _ *array) { p.BufferLength = true },
		}, {
			Quirk: contract.Quirk{
				ID: "pyarrow.stream-none-only", Effect: contract.EffectCorrect, Protocol: string(program.DLPack),
				Summary:  "__dlpack__ takes no stream but None: -1 is an error as well",
				Upstream: arrayPXI,
			},
			Edit: program.WithoutStream[array],
		}, {
			Quirk: contract.Quirk{
				ID: "pyarrow.kwargs-before-26", Until: "26.0.0", Effect: contract.EffectCorrect,
				Protocol: string(program.DLPack),
				Summary: "__dlpack__ does not know the keywords max_version, dl_device and copy, and its capsule " +
					"is the unversioned one, in which nothing says that the array is immutable",
				Upstream: "arrow pull request 50827",
			},
			When: (*array).isArray,
			Edit: func(p *program.Plan, a *array) {
				program.WithoutKeywords(p, a)
				program.UnsignedReadOnly(p, a)
			},
		},
	}
}
