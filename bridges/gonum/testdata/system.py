import numpy as np

rng = np.random.default_rng(7)
a = np.asfortranarray(rng.normal(size=(200, 200)) + 200 * np.eye(200))  # column-major, as LAPACK has it
b = rng.normal(size=(200, 80))
x = np.zeros((200, 80))


def residual():
    return float(abs(a @ x - b).max())
