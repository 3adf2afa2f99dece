"""An instrument whose driver is made for NumPy 1.x, and does not run with NumPy 2."""
import numpy as np

assert np.__version__.startswith("1."), "the driver does not run with NumPy " + np.__version__

CHANNELS, LENGTH = 64, 4096
tick = np.arange(LENGTH) / LENGTH
traces = np.zeros((CHANNELS, LENGTH), np.float32)


def measure(seed):
    """Fills traces anew: each channel has a tone of its own, in noise. Gives the tones."""
    rng = np.random.RandomState(seed)
    tones = rng.randint(5, 500, CHANNELS)
    traces[:] = np.sin(2 * np.pi * tones[:, None] * tick) + rng.normal(scale=0.5, size=traces.shape)
    return [int(np.product(tone)) for tone in tones]  # NumPy 2 has no product any more


def version():
    return np.__version__
