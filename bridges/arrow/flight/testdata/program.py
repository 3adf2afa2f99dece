import numpy as np

frame = np.arange(480 * 640 * 3, dtype=np.uint32).astype(np.uint8).reshape(480, 640, 3)
mirrored = frame[:, ::-1]
samples = np.linspace(0, 1, 3_000_000, dtype=np.float32)
halves = np.arange(100_000, dtype=np.float16)
flags = np.arange(100_000) % 3 == 0
step = np.array(7)
dates = np.array(["2024-01-01"], "datetime64[D]")  # Arrow would say some of them otherwise
table = {"weights": np.ones((300, 200))}
