import threading

import torch

# A tensor is the memory itself, and uses it as long as it or a part of it is there.
for name in "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128":
    for strides in None, [256, 64]:
        x = host("torch", name, [2, 3], strides=strides, offset=256)
        assert type(x) is torch.Tensor and x.dtype is getattr(torch, name) and x.shape == (2, 3), (name, x)
        assert x.data_ptr() == host("torch", "uint8", [1]).data_ptr() + 256, name
x = host("torch", "int32", [3])
x[:] = torch.tensor([1, 2, 3])
assert memory(12).cast("i").tolist() == [1, 2, 3]
del x
assert held() == 0, held()
parts = [host("torch", "float32", [64, 64])]
parts += [parts[0][1:], parts[0].T, parts[0].numpy(), parts[0].storage() if hasattr(parts[0], "storage") else parts[0]]
while parts:
    assert held() == 1, held()
    parts.pop(0)
assert held() == 0, held()

# Autograd keeps it until its own threads have gone backward.
weights = torch.ones(64, 64, requires_grad=True)
result = host("torch", "float32", [64, 64]) @ weights
assert held() == 1, held()
result.sum().backward()
del result
assert held() == 0, held()

# Another thread may end it; a capsule that nobody takes ends it; a child does not.
parts = [host("torch", "float32", [64, 64])]
thread = threading.Thread(target=parts.clear)
thread.start()
thread.join()
assert held() == 0, held()
for version in None, (1, 0):
    capsule = host("", "float32", [3]).__dlpack__(max_version=version)
    assert held() == 1, held()
    del capsule
    assert held() == 0, held()
x = host("torch", "float32", [64, 64])
pid = os.fork()
if pid == 0:
    del x
    os._exit(0)
os.waitpid(pid, 0)
assert held() == 1, held()

for args, why in (("float32x4", [2], None), "lanes"), (("opaque[8]", [2], None), "torch has no elements of"), (("float32", [2], [-4]), "negative"):
    assert why in refused(host, "torch", *args[:2], strides=args[2], offset=64), why
del x
assert held() == 0, held()
keep = host("torch", "float32", [3])  # until the interpreter has ended
print("done")
