"""The program whose arrays the hand-off is measured with: of each framework, one for each size in bytes."""

import sys

import jax.numpy as jnp
import numpy as np
import torch

for size in sys.argv[1:]:
    n = int(size) // 4
    globals()["numpy" + size] = np.empty(n, dtype="f4")
    globals()["torch" + size] = torch.empty(n)
    globals()["jax" + size] = jnp.zeros(n)
