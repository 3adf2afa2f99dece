"""A small model that knows nothing of its host."""
import numpy as np

weights = np.linspace(-1, 1, 4 * 3).reshape(4, 3)


def predict(x, top=1):
    """Gives the classes of each row of x with the highest scores, and the scores of all classes."""
    scores = x @ weights
    return {"classes": [[int(c) for c in row] for row in np.argsort(-scores)[:, :top]], "scores": scores}


def scale(x, by):
    x *= by  # in the host's own memory


def project(x):
    return x @ weights


def countdown(n):
    for i in range(n, 0, -1):
        yield i
