"""PyTorch. Which allocator it has is decided by PYTORCH_CUDA_ALLOC_CONF."""

import torch
from work import COUNT

torch.cuda.init()
_captured = None


def version():
    return torch.__version__


def make(kind):
    if kind == "pinned":
        return torch.zeros(COUNT, pin_memory=True)
    return torch.zeros(COUNT, device="cuda")


def write(kind, array, value):
    if kind == "pinned":
        array.copy_(torch.full((COUNT,), value, device="cuda"), non_blocking=True)
    else:
        array.fill_(value)


def capture(n):
    global _captured
    if _captured is None:
        _captured = torch.zeros(1024, device="cuda")
        torch.cuda.synchronize()
    mode = ("global", "thread_local", "relaxed")[n % 3]
    with torch.cuda.graph(torch.cuda.CUDAGraph(), capture_error_mode=mode):
        _captured.add_(1)


def address(array):
    return array.data_ptr()


def stream():
    return torch.cuda.current_stream().cuda_stream


def other_stream():
    return torch.cuda.stream(torch.cuda.Stream())
