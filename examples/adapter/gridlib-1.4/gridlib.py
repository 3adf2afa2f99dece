"""Grids of numbers. This module is made up, for the example of an adapter."""

import ctypes

__version__ = "1.4.0"


class Grid:
    """Rows and columns of float32, which speak the buffer protocol as all arrays of ctypes do."""

    def __init__(self):
        self.pending = []

    def put(self, row, column, value):
        """Write a cell, at the next flush."""
        self.pending.append((row, column, value))

    def flush(self):
        """Write what is pending, and return the grid."""
        for row, column, value in self.pending:
            self[row][column] = value
        self.pending.clear()
        return self


def zeros(rows, columns):
    """Make a grid of zeros."""
    return type("Grid", (Grid, ctypes.c_float * columns * rows), {})()
