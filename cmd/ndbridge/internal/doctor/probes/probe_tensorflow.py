"""TensorFlow's tensors and variables on the CPU."""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # this is about the CPU, and GPUs may be busy

import numpy as np
import tensorflow as tf

import probing
from probing import MANY, arrays, kind, now


def content(t):
    t = np.array(t)
    return t.shape, t.tobytes()


def plain(dtype):
    return tf.cast(tf.range(MANY) % 100, dtype)


def symbol():
    seen = []
    tf.function(lambda x: seen.append(x) or x)(tf.constant([1.0]))
    return seen[0]


for dtype in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
              "float16", "bfloat16", "float64", "complex64", "complex128"):
    kind(dtype, lambda: plain(dtype), content)
kind("float32", lambda: plain("float32"), content, "tensorflow.stream-none-only")
kind("computed", lambda: plain("float32") * 2, content, "tensorflow.legacy-capsule-only")
kind("variable", lambda: tf.Variable(plain("float32")), content, "tensorflow.variables")
kind("small", lambda: tf.range(3), content, shared=False)
kind("no elements", lambda: tf.zeros((0, 3)), content, shared=False)
kind("strings", lambda: tf.constant(["a", "b"]), quirk="tensorflow.string-aborts-process")
kind("quantized", lambda: tf.cast(tf.constant([1, 2]), tf.qint8), quirk="tensorflow.small-ints")
kind("symbolic", symbol, quirk="tensorflow.not-eager")

report = probing.report()
