import numpy as np

rng = np.random.default_rng(3)
samples = rng.normal(size=(64, 300)).astype(np.float32).T  # not in row-major order
weights = rng.normal(size=(64, 80)).astype(np.float32)
scores = np.full((300, 80), np.nan, np.float32)


def error():
    """How far the scores are from what NumPy computes."""
    return float(np.abs(scores - np.tanh(samples @ weights)).max())
