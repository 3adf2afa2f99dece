"""Tensors of every kind, in `tensors`, and in `report` what PyTorch itself says about each.

It runs under every PyTorch from 1.13 on. What a version does not have is left out.
"""

import ctypes
import hashlib
import json
import os
import tempfile
import warnings

import numpy as np
import torch

warnings.simplefilter("ignore")
TORCH = tuple(int(n) for n in torch.__version__.split("+")[0].split(".")[:2])
HEAP = ("shared-heap", "")
FILE = ("mapped-file", "")
EMPTY = ("empty", "")
SMALL = ("staged", "below-threshold")
PRIVATE = ("staged", "private-mapping")
LARGE = 1 << 17  # elements, so that there are more bytes than the shared heap's threshold

tensors = {}
said = []


def elements(t):
    """The elements of t, whatever they are, in row-major order."""
    t = t.detach()
    t = t if t.is_contiguous() else t.contiguous()
    return ctypes.string_at(t.data_ptr(), t.numel() * t.element_size()) if t.numel() else b""


def see(name, t, dtype, tag="", way=HEAP, read_only=False, **more):
    """A view of just what PyTorch says, by that way."""
    tensors[name] = t
    plain = t.as_subclass(torch.Tensor)
    said.append({
        "name": name, "dtype": dtype, "tag": tag, "shape": list(plain.shape),
        "strides": [s * plain.element_size() for s in plain.stride()],
        "route": way[0], "reason": way[1], "read_only": read_only,
        "sha256": hashlib.sha256(elements(plain)).hexdigest(), **more,
    })


def refuse(name, t, category, text, **more):
    """An error of that category, which says text."""
    tensors[name] = t
    said.append({"name": name, "error": category, "text": text, **more})


def has(*names):
    return [(n, getattr(torch, n)) for n in names if hasattr(torch, n)]


def filled(dtype, count=LARGE):
    """Elements that differ from each other."""
    size = torch.empty(0, dtype=dtype).element_size()
    t = torch.empty(count, dtype=dtype)
    raw = bytes(i * 7 % 127 for i in range(1 << 10)) * (count * size // (1 << 10) + 1)
    ctypes.memmove(t.data_ptr(), raw, count * size)
    return t


# Types.
for name, dtype in has(
    "float16", "float32", "float64", "bfloat16", "complex32", "complex64", "complex128", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
):
    see("dtype_" + name, filled(dtype), name)
see("dtype_bool", torch.arange(LARGE) % 3 == 0, "bool")
for name, dtype in has("float4_e2m1fn_x2"):
    see("dtype_" + name, filled(dtype), "float4_e2m1fnx2")
for name, dtype in has("int1", "int4", "int7", "uint1", "uint4", "uint7"):
    see("dtype_" + name, filled(torch.uint8).view(dtype), "opaque[1]", name, quirk="torch.subbyte-as-bytes")
small = torch.arange(10.0)
see("small", small, "float32", way=SMALL)

# Geometry.
cube = filled(torch.float32).reshape(32, 64, 64)
see("scalar", torch.tensor(2.5), "float32", way=SMALL)
see("scalar_inside", cube[3, 4, 5], "float32")
see("one_of_large", cube[3:4, 4:5, 5:6], "float32")
see("empty_1", torch.ones(0), "float32", way=EMPTY)
see("empty_2", torch.ones(0, 3), "float32", way=EMPTY)
see("empty_3", torch.ones(3, 0, 2), "float32", way=EMPTY)
see("empty_slice", cube[5:5], "float32", way=EMPTY)
see("transposed", cube.permute(2, 0, 1), "float32")
see("turned", cube[0].t(), "float32")
see("slice", cube[1:, 1:, 1:], "float32")
see("steps", cube[::3, 5::2, ::7], "float32")
see("selected", cube[:, 7], "float32")
see("diagonal", cube.diagonal(dim1=1, dim2=2), "float32")
see("flipped", cube.flip(0), "float32")
see("expanded", torch.ones(1, 64, 1024).expand(3, 64, 1024), "float32", read_only=True)
see("expanded_scalar", torch.tensor(1.5).expand(4, 5), "float32", way=SMALL, read_only=True)
see("windows", torch.arange(float(LARGE)).unfold(0, 8, 1), "float32", read_only=True)
see("as_strided", torch.arange(float(LARGE)).as_strided((100, 7), (20, 2), 13), "float32")
see("as_strided_overlap", torch.arange(float(LARGE)).as_strided((100, 7), (2, 1), 13), "float32", read_only=True)
see("odd_size_one", torch.arange(float(LARGE)).as_strided((1, 3), (100, 2)), "float32")
see("channels_last", filled(torch.float32).reshape(2, 4, 128, 128).to(memory_format=torch.channels_last), "float32")
see("many_axes", torch.ones([1] * 60 + [2] * 4), "float32", way=SMALL)
see("real_part", filled(torch.complex64).real, "float32")
see("imag_part", filled(torch.complex64).imag, "float32")
see("as_real", torch.view_as_real(filled(torch.complex64)), "float32")
see("bits_viewed", filled(torch.float32).view(torch.int16), "int16")

# Autograd, and classes.
grad = torch.arange(float(LARGE), requires_grad=True)
see("requires_grad", grad, "float32", quirk="torch.requires-grad")
see("graph", grad * 2, "float32", quirk="torch.requires-grad")
see("detached", grad.detach(), "float32")
see("parameter", torch.nn.Parameter(filled(torch.float64)), "float64", quirk="torch.requires-grad")
see("parameter_frozen", torch.nn.Parameter(filled(torch.float64), requires_grad=False), "float64")
with torch.inference_mode():
    see("inference", torch.arange(float(LARGE)), "float32")


class Plain(torch.Tensor):
    pass


class Hostile(torch.Tensor):
    """Runs its own code wherever it can, and lies."""

    requires_grad = property(lambda self: 1 / 0)
    layout = "none"

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError("hostile")


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError("wrapper")


class NoTensor:
    """No tensor, though it says so."""

    __class__ = property(lambda self: torch.Tensor)


see("subclass", torch.arange(float(LARGE)).as_subclass(Plain), "float32")
see("subclass_grad", torch.nn.Parameter(torch.arange(float(LARGE))).as_subclass(Plain), "float32", quirk="torch.requires-grad")
if TORCH >= (2, 10):
    see("hostile", torch.arange(float(LARGE)).as_subclass(Hostile), "float32")
refuse("wrapper", Wrapper(cube), "invalid pointer", "Wrapper has no memory of its own", quirk="torch.no-data")
refuse("no_tensor", NoTensor(), "unsupported operation", "NoTensor is not an array")

# What is computed when it is read.
lazy = filled(torch.complex64)
refuse("conj", lazy.conj(), "unsupported operation", "resolve_conj()", quirk="torch.conj-bit")
see("conj_resolved", lazy.conj().resolve_conj(), "complex64")
see("conj_twice", lazy.conj().conj(), "complex64")
see("conj_real", lazy.conj().real, "float32")
refuse("neg", lazy.conj().imag, "unsupported operation", "resolve_neg()", quirk="torch.neg-bit-silent")
see("neg_resolved", lazy.conj().imag.resolve_neg(), "float32")

# What is not one piece of strided memory.
layouts = {"quirk": "torch.layouts"}
eye = torch.eye(16)
refuse("coo", eye.to_sparse(), "layout not supported", "the tensor is sparse_coo", **layouts)
refuse("csr", eye.to_sparse_csr(), "layout not supported", "the tensor is sparse_csr", **layouts)
refuse("csc", eye.to_sparse_csc(), "layout not supported", "the tensor is sparse_csc", **layouts)
refuse("bsr", eye.to_sparse_bsr((4, 4)), "layout not supported", "the tensor is sparse_bsr", **layouts)
if torch.backends.mkldnn.is_available():
    refuse("mkldnn", eye.to_mkldnn(), "layout not supported", "the tensor is mkldnn", **layouts)
refuse("nested", torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "layout not supported", "the tensor is nested",
       **layouts)
if hasattr(torch, "jagged"):
    refuse("jagged", torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged), "layout not supported",
           "the tensor is nested", **layouts)
values = torch.sparse_coo_tensor(torch.arange(LARGE).reshape(1, -1), torch.arange(float(LARGE)), (LARGE,), is_coalesced=True) \
    if TORCH >= (2, 0) else eye.to_sparse().coalesce()
see("coo_values", values.values(), "float32", way=HEAP if TORCH >= (2, 0) else SMALL)
for name, dtype in has("quint8", "qint8", "qint32"):
    refuse(name, torch.quantize_per_tensor(small, 0.1, 0, dtype), "wrong dtype", name, quirk="torch.quantized-and-bits")
for name, dtype in has("bits8", "bits16", "bits1x8"):
    refuse(name, torch.empty(4, dtype=dtype), "wrong dtype", name, quirk="torch.quantized-and-bits")

# Tensors without memory.
no_data = {"quirk": "torch.no-data"}
refuse("meta", torch.ones(3, device="meta"), "invalid pointer", "has no memory", **no_data)
refuse("meta_empty", torch.ones(0, device="meta"), "invalid pointer", "has no memory", **no_data)
lazy_layer = torch.nn.LazyLinear(3)
refuse("uninitialized", lazy_layer.weight, "invalid pointer", "UninitializedParameter has no memory", **no_data)
refuse("uninitialized_buffer", torch.nn.parameter.UninitializedBuffer(), "invalid pointer", "UninitializedBuffer has no memory",
       **no_data)
refuse("functional", torch._to_functional_tensor(torch.ones(3)), "invalid pointer", "has no memory", **no_data)
storage = torch.ones(LARGE)
(storage.untyped_storage() if TORCH >= (2, 0) else storage.storage()).resize_(0)
refuse("resized", storage, "invalid pointer", "has no memory", **no_data)
refuse("zero", torch._efficientzerotensor((3,)), "invalid pointer", "has no memory", **no_data)
if TORCH >= (2, 0):
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.masked import masked_tensor

    with FakeTensorMode():
        fake = torch.ones(3)
    refuse("fake", fake, "invalid pointer", "FakeTensor has no memory", **no_data)
    refuse("masked", masked_tensor(torch.ones(2), torch.tensor([True, False])), "invalid pointer", "MaskedTensor has no memory",
           **no_data)
    torch.vmap(lambda x: refuse("vmap", x, "invalid pointer", "has no memory", **no_data) or x)(torch.ones(3, 2))

# Memory that PyTorch did not allocate, or that others have too.
folder = tempfile.TemporaryDirectory()


def file(name, size=1 << 17):
    path = os.path.join(folder.name, name)
    with open(path, "wb") as out:
        out.write(bytes(i % 251 for i in range(size)))
    return path


over = np.arange(float(LARGE))
see("from_numpy", torch.from_numpy(over), "float64")
see("from_numpy_small", torch.from_numpy(np.arange(4)), "int64", way=SMALL)
see("from_numpy_turned", torch.from_numpy(over.reshape(256, 512).T), "float64")
see("from_dlpack", torch.utils.dlpack.from_dlpack(over), "float64") if TORCH >= (2, 0) else None
see("from_memmap", torch.from_numpy(np.memmap(file("memmap"), "i4", "r+")), "int32", way=FILE)
see("from_file", torch.from_file(file("shared"), shared=True, size=1000, dtype=torch.int32), "int32", way=FILE)
see("from_file_private", torch.from_file(file("private"), shared=False, size=1000, dtype=torch.int32), "int32", way=PRIVATE)
see("share_memory", torch.arange(1000).share_memory_(), "int64", way=FILE)
see("share_memory_slice", torch.arange(1000).share_memory_()[10:900:7], "int64", way=FILE)
see("over_bytearray", torch.frombuffer(bytearray(range(200)), dtype=torch.int16), "int16", way=SMALL)
if hasattr(torch, "_lazy_clone"):
    see("lazy_clone", torch._lazy_clone(cube), "float32")

report = torch.frombuffer(bytearray(json.dumps(said).encode()), dtype=torch.uint8)
