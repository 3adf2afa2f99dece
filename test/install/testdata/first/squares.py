import numpy as np

squares = (np.arange(1_000_000) + 1) ** 2
