import numpy as np
import pyarrow as pa


def resized(before, after):
    """A buffer full of sevens that had another size when it was made."""
    made = pa.allocate_buffer(before, resizable=True)
    made.resize(after)
    np.frombuffer(made, "u1")[:] = 7
    return made
