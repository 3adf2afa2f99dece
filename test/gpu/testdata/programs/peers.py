"""The usual ways to get at a torch tensor on a GPU, for comparison: over torch.multiprocessing in another
process, and by cuda.core's StridedMemoryView in this one.

The test steers it by lines on stdin, each a way's name; the answer is a line with nanoseconds.
"""

import sys
import time

import torch
import torch.multiprocessing as multiprocessing
from cuda.core import Device
from cuda.core.utils import StridedMemoryView

from work import COUNT


def consume(tensors, answers):
    for tensor in iter(tensors.get, None):
        del tensor
        answers.put(None)


def main():
    context = multiprocessing.get_context("spawn")
    tensors, answers = context.SimpleQueue(), context.SimpleQueue()
    child = context.Process(target=consume, args=(tensors, answers), daemon=True)
    child.start()
    tensor = torch.zeros(COUNT, device="cuda")
    device = Device()
    device.set_current()
    stream = int(device.create_stream().handle)
    for line in sys.stdin:
        way = line.strip()
        device.set_current()  # PyTorch takes it away when it shares a tensor
        start = time.perf_counter_ns()
        if way == "torch.multiprocessing":
            tensors.put(tensor)
            answers.get()
        elif way == "StridedMemoryView":
            StridedMemoryView.from_any_interface(tensor, stream_ptr=stream)
        print(time.perf_counter_ns() - start, flush=True)
    tensors.put(None)
    child.join()


if __name__ == "__main__":
    main()
