"""TensorFlow's tensors of every kind, in `arrays`, and in `report` what TensorFlow itself says about each.

It runs after setup.py.
"""

import hashlib
import json

HEAP = ("shared-heap", "")
EMPTY = ("empty", "")
SMALL = ("staged", "below-threshold")

arrays = {}
said = []


def see(name, x, way=SMALL, quirk="tensorflow.stream-none-only"):
    """A view of just what TensorFlow says."""
    arrays[name] = x
    plain = np.array(x)
    said.append({
        "name": name, "dtype": plain.dtype.name, "shape": plain.shape, "strides": plain.strides,
        "route": way[0], "reason": way[1], "read_only": True, "quirk": quirk,
        "sha256": hashlib.sha256(plain.tobytes()).hexdigest(),
    })


def refuse(name, x, category, text, **more):
    """An error of that category, which says text."""
    arrays[name] = x
    said.append({"name": name, "error": category, "text": text, **more})


for dtype in (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
):
    see(dtype, tf.cast(tf.range(7), dtype))
    see("large " + dtype, tf.cast(tf.range(70000) % 100, dtype), HEAP)
table = tf.reshape(tf.range(120000.0), (300, 400))
see("table", table, HEAP)
see("transposed", tf.transpose(table), HEAP)
see("part", table[10:290, 5:], HEAP)
see("computed", table @ tf.transpose(table), HEAP)
see("no axes", tf.constant(2.5))
see("no elements", tf.zeros((0, 3)), EMPTY)
weights = tf.Variable(tf.ones((300, 400)))
see("variable", weights, HEAP, "tensorflow.variables")
see("value of a variable", weights.value(), HEAP)
layer = tf.keras.layers.Dense(300)
layer.build((None, 400))
see("Keras' variable", layer.kernel, HEAP, "tensorflow.variables")
see("variable of Keras'", layer.kernel.value, HEAP, "tensorflow.variables")
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(weights * weights)
see("gradient", tape.gradient(loss, weights), HEAP)

refuse("strings", tf.constant(["a", "b"]), "wrong dtype", "objects of the process",
       quirk="tensorflow.string-aborts-process")
refuse("variable of strings", tf.Variable(["a"]), "wrong dtype", "objects of the process",
       quirk="tensorflow.string-aborts-process")
refuse("quantized", tf.cast(tf.constant([1, 2]), tf.qint8), "wrong dtype", "qint8", quirk="tensorflow.small-ints")
refuse("symbolic", symbols[0], "unsupported operation", "does not exist yet", quirk="tensorflow.not-eager")
few = tf.sparse.from_dense(np.eye(3))
refuse("sparse", few, "unsupported operation", ".values", quirk="tensorflow.not-eager")
see("values of a sparse tensor", few.values)
rows = tf.ragged.constant([[1], [2, 3]])
refuse("ragged", rows, "unsupported operation", "flat_values", quirk="tensorflow.not-eager")
see("values of a ragged tensor", rows.flat_values)

report = np.frombuffer(json.dumps(said).encode(), "u1")
