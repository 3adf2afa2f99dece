"""PyTorch's tensors on the CPU."""

import ctypes

import torch

import probing
from probing import MANY, arrays, kind, now


def content(t):
    t = t.detach().contiguous()
    size = t.numel() * t.element_size()
    return t.shape, ctypes.string_at(t.data_ptr(), size) if size else b""


def plain(dtype):
    return torch.arange(MANY).to(getattr(torch, dtype))


def bits(dtype):
    return torch.ones(MANY, dtype=torch.uint8).view(getattr(torch, dtype))


def bytes_of(t):
    return content(t.view(torch.uint8))


grid = torch.arange(MANY * 2.0).reshape(256, 512)

for dtype in ("int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float64", "complex64"):
    kind(dtype, lambda: plain(dtype), content)
kind("float32", lambda: plain("float32"), content, "torch.kwargs-before-2.9")
kind("doubled", lambda: plain("float32") * 2, content, "torch.cpu-stream")
kind("bool", lambda: plain("bool"), content, "torch.bool-before-2.2")
kind("float8", lambda: bits("float8_e5m2"), bytes_of, "torch.small-floats-before-2.10")
kind("uint4", lambda: bits("uint4"), bytes_of, "torch.subbyte-as-bytes")
kind("transposed", lambda: grid.T, content)
kind("part", lambda: grid[1::2, 3::7], content)
kind("expanded", lambda: grid[0].expand(3, 512), content)
kind("parameter", lambda: torch.nn.Parameter(plain("float32")), content, "torch.requires-grad")
kind("computed", lambda: torch.nn.Parameter(plain("float32")) * 2, content, "torch.exchange-unchecked")
kind("shared memory", lambda: plain("float32").share_memory_(), content)
kind("small", lambda: torch.arange(3), content, shared=False)
kind("no elements", lambda: torch.zeros(0, 3), content, shared=False)
kind("sparse", lambda: torch.eye(3).to_sparse(), quirk="torch.layouts")
kind("meta", lambda: torch.zeros(3, device="meta"), quirk="torch.no-data")
kind("conjugate", lambda: plain("complex64").conj(), quirk="torch.conj-bit")
kind("negative", lambda: plain("complex64").conj().imag, quirk="torch.neg-bit-silent")
kind("quantized", lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
     quirk="torch.quantized-and-bits")

report = probing.report()
