"""Grids of cells. This module is made up, for the example of an adapter."""

import ctypes

__version__ = "2.0.0"

CELLS = {"float": ctypes.c_float, "bool": ctypes.c_bool}


class Grid:
    """Rows and columns of cells, which speak the buffer protocol as all arrays of ctypes do."""

    def put(self, row, column, value):
        """Write a cell."""
        self[row][column] = value


def zeros(rows, columns, kind="float"):
    """Make a grid of zeros, or of False."""
    grid = type("Grid", (Grid, CELLS[kind] * columns * rows), {})()
    grid.kind = kind
    return grid
