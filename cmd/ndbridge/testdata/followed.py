"""A training without arrays that are worth a look: what it says of itself are numbers."""

import time

best, unset, rate = float("inf"), float("nan"), 0.25
metrics = {"acc": 0.0, "<img src=x onerror=\"document.body.dataset.hacked='number'\">": 1, "done": False}


def train():
    step, loss = 0, 1.0
    while True:
        step += 1
        loss = float("nan") if step >= 200 else 1 / step
        metrics["acc"] = 1 - 1 / step
        time.sleep(0.01)


train()
