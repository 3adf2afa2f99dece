"""Prints what the safetensors library reads in a file: for each tensor its name, dtype, shape, and the bytes of its elements."""
import sys

from safetensors import deserialize, safe_open

with safe_open(sys.argv[1], framework="np") as f:
    print(ascii(sorted((f.metadata() or {}).items())))
with open(sys.argv[1], "rb") as f:
    tensors = deserialize(f.read())
for name, t in sorted(tensors):
    print(ascii(name), t["dtype"], t["shape"], bytes(t["data"]).hex())
