"""One of the usual ways to get at a torch tensor on a GPU, for comparison: over torch.multiprocessing in
another process, or by cuda.core's StridedMemoryView in this one. Which, the first argument says.

The test steers it by lines on stdin: each is one measurement, and the answer a line with nanoseconds.
"""

import sys
import time

import torch
import torch.multiprocessing as multiprocessing
from work import COUNT


def consume(tensors, answers):
    for tensor in iter(tensors.get, None):
        del tensor
        answers.put(None)


def over_multiprocessing(measure):
    context = multiprocessing.get_context("spawn")
    tensors, answers = context.SimpleQueue(), context.SimpleQueue()
    child = context.Process(target=consume, args=(tensors, answers), daemon=True)
    child.start()
    tensor = torch.zeros(COUNT, device="cuda")

    def send():
        tensors.put(tensor)
        answers.get()

    measure(send)
    tensors.put(None)
    child.join()


def by_strided_memory_view(measure):
    from cuda.core import Device
    from cuda.core.utils import StridedMemoryView

    tensor = torch.zeros(COUNT, device="cuda")
    device = Device()
    device.set_current()
    stream = device.create_stream()  # which lives as long as this name
    measure(lambda: StridedMemoryView.from_any_interface(tensor, stream_ptr=int(stream.handle)))


def measure(call):
    for _ in sys.stdin:
        start = time.perf_counter_ns()
        call()
        print(time.perf_counter_ns() - start, flush=True)


if __name__ == "__main__":
    {"torch.multiprocessing": over_multiprocessing, "StridedMemoryView": by_strided_memory_view}[sys.argv[1]](measure)
