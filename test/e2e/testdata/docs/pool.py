import multiprocessing
import numpy as np


def work(part):
    return float(part.sum())


if __name__ == "__main__":
    frame = np.ones((1024, 1024))
    # A server process makes the children. It has none of this program's arrays.
    with multiprocessing.get_context("forkserver").Pool(2) as pool:
        total = sum(pool.map(work, np.array_split(frame, 4)))
    assert total == frame.size
