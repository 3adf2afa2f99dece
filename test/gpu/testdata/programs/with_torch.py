"""PyTorch. Which allocator it has is decided by PYTORCH_CUDA_ALLOC_CONF."""

import torch
from work import COUNT

torch.cuda.init()
_captured = None
_compiled = None
_sized = 0
_graphs = 0
_sizes = torch.ones(1 << 14, device="cuda")
_pinned = torch.zeros(1 << 14, pin_memory=True)


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


def capture_compiled(n):
    """Has a compiled function capture a graph: it has one for each size."""
    global _compiled, _sized
    if _compiled is None:
        _compiled = torch.compile(lambda x: (x * 2 + 1).relu().sum(), mode="reduce-overhead", dynamic=True)
    _sized += 1
    before = _graphs
    for _ in range(3):  # at first, it runs without one
        torch.compiler.cudagraph_mark_step_begin()
        _compiled(_sizes[: _sized + 8])
    if _graphs == before:
        raise RuntimeError("nothing was captured")


def _counting(begin):
    def counted(*args, **kwargs):
        global _graphs
        _graphs += 1
        return begin(*args, **kwargs)

    return counted


torch.cuda.CUDAGraph.capture_begin = _counting(torch.cuda.CUDAGraph.capture_begin)


def capture_pinned(n):
    """Captures a copy to memory of the host's."""
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        _pinned.copy_(_sizes, non_blocking=True)


def address(array):
    return array.data_ptr()


def stream():
    return torch.cuda.current_stream().cuda_stream


def other_stream():
    return torch.cuda.stream(torch.cuda.Stream())
