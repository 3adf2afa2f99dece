import numpy as np

frame = np.full((240, 320, 3), (10, 20, 30), np.uint8)  # blue, green, red, as OpenCV has them


def red():
    """Where the frame is red: left, top, right, bottom."""
    rows, columns = np.nonzero((frame == (0, 0, 255)).all(axis=2))
    return [int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1]
