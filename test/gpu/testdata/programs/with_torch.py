"""PyTorch. Which allocator it has is decided by PYTORCH_CUDA_ALLOC_CONF."""

import torch
from work import COUNT

torch.cuda.init()


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


def address(array):
    return array.data_ptr()


def stream():
    return torch.cuda.current_stream().cuda_stream


def other_stream():
    return torch.cuda.stream(torch.cuda.Stream())
