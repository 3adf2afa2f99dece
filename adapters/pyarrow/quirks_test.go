package pyarrow_test

import (
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/adapters/pyarrow"
)

// quirks is the table with its witnesses.
func quirks() *programtest.Quirks {
	return &programtest.Quirks{
		Framework: "pyarrow",
		Table:     pyarrow.New().Quirks(),
		Setup:     setup,
		Witnesses: []programtest.Witness{
			{
				ID: "pyarrow.no-arrays", Array: `pa.table({"x": [1, 2]})`,
				With:    `^unsupported operation: .*a Table is not an array; name one column: witness\[0\]\[0\]`,
				Without: `^unsupported operation: .*Table is not an array; `,
			}, {
				ID: "pyarrow.nulls", Array: `pa.array([1, None, 3])`,
				With:    `^unsupported operation: .*1 elements are missing; publish witness\[1\]\.drop_null\(\)`,
				Without: `^python error: .*ArrowTypeError: Can only use DLPack on arrays with no nulls`,
			}, {
				ID: "pyarrow.bit-packed-bool", Array: `pa.array([True, False])`,
				With: `^wrong dtype: .*share a byte; publish witness\[2\]\.cast\('uint8'\)`,
				// The next quirk says the same, with another remedy.
				Without: `^python error: .*ArrowTypeError: Bit-packed boolean data type not supported by DLPack`,
			}, {
				ID: "pyarrow.other-types", Array: `pa.array(["a"])`,
				With:    `^wrong dtype: .*type string; publish witness\[3\]\.to_numpy`,
				Without: `^python error: .*ArrowTypeError: DataType is not compatible with DLPack spec: string`,
			}, {
				ID: "pyarrow.chunks", Array: `pa.chunked_array([[1], [2]])`,
				With:    `^layout not supported: .*in 2 chunks; name one chunk: witness\[4\]\.chunks\[0\]`,
				Without: `^unsupported operation: .*ChunkedArray is not an array`,
			}, {
				ID: "pyarrow.one-chunk", Array: `pa.chunked_array([[1, 2]])`,
				With:    `^view of int64\[2\] read-only.*: 01000000000000000200000000000000$`,
				Without: `^unsupported operation: .*ChunkedArray is not an array`,
			}, {
				ID: "pyarrow.resized-buffer", Array: `resized(16, 8)`,
				With:    `^view of int8\[8\] writable.*: 0707070707070707$`,
				Without: `^protocol violation: .*the buffer says that it has 8 bytes, and 16 elements of 1`,
			}, {
				ID: "pyarrow.stream-none-only", Array: `pa.array([1, 2])`, Alone: true,
				With:    `^view of int64\[2\] read-only.*: 01000000000000000200000000000000$`,
				Without: `^python error: .*NotImplementedError: Only stream=None is supported`,
			}, {
				ID: "pyarrow.kwargs-before-26", Array: `pa.array([1, 2])`, Alone: true,
				With:    `^view of int64\[2\] read-only.*: 01000000000000000200000000000000$`,
				Without: `^python error: .*TypeError: .*unexpected keyword argument`,
			},
		},
	}
}

// TestQuirks proves each quirk on the real PyArrow, in every version at hand that has it.
func TestQuirks(t *testing.T) {
	t.Parallel()
	quirks().ProveEach(t, pythons(t), os.Getenv("NDBRIDGE_TEST_PYTHONS_PYARROW") != "")
}

func TestQuirkTable(t *testing.T) {
	t.Parallel()
	quirks().CheckTable(t)
}
