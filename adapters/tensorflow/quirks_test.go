package tensorflow_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/adapters/tensorflow"
)

// quirks is the table with its witnesses.
func quirks() *programtest.Quirks {
	return &programtest.Quirks{
		Framework: "tensorflow",
		Table:     tensorflow.New().Quirks(),
		Setup:     setup,
		Witnesses: []programtest.Witness{
			{
				ID: "tensorflow.not-eager", Array: `tf.ragged.constant([[1], [2, 3]])`,
				With:    `^unsupported operation: .*RaggedTensor has rows of different lengths; name one part: witness\[0\]\.flat_values`,
				Without: `^unsupported operation: .*RaggedTensor is not an array`,
			}, {
				ID: "tensorflow.string-aborts-process", Array: `tf.constant(["a", "b"])`, Alone: true,
				With:    `^wrong dtype: .*string, which are objects of the process; publish`,
				Without: `^unavailable: `, // the program is gone
			}, {
				ID: "tensorflow.small-ints", Array: `tf.cast(tf.constant([1, 2]), tf.qint8)`,
				With:    `^wrong dtype: .*does not export qint8; publish tf.bitcast\(witness\[2\], tf.int8\)`,
				Without: `^python error: .*InvalidArgumentError: DT_QINT8 is not supported by dlpack`,
			}, {
				ID: "tensorflow.variables", Array: `tf.Variable([1.0, 2.0])`,
				With:    `^view of float32\[2\] read-only.*: 0000803f00000040$`,
				Without: `^unsupported operation: .*ResourceVariable is not an array`,
			}, {
				ID: "tensorflow.stream-none-only", Array: `tf.constant([1.0, 2.0])`, Alone: true,
				With:    `^view of float32\[2\] read-only.*: 0000803f00000040$`,
				Without: `^python error: .*RuntimeError: .*does not support DLPack export with a non-None stream`,
			}, {
				ID: "tensorflow.legacy-capsule-only", Array: `tf.constant([1.0, 2.0])`,
				With:    `^view of float32\[2\] read-only`,
				Without: `^view of float32\[2\] writable`,
			},
		},
	}
}

// TestQuirks proves each quirk on the real TensorFlow.
func TestQuirks(t *testing.T) {
	t.Parallel()
	quirks().ProveEach(t, pythons(t), true)
}

func TestQuirkTable(t *testing.T) {
	t.Parallel()
	quirks().CheckTable(t)
}
