"""A small model that knows nothing of its host: it names the colour of an image."""
import numpy as np

COLOURS = {
    "red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "yellow": (255, 255, 0), "black": (0, 0, 0), "white": (255, 255, 255),
}
weights = np.array(list(COLOURS.values()), np.float32) / 255


def classify(image, top=3):
    """Gives the most likely colours of an image of height, width and three channels, with their probabilities."""
    distance = np.linalg.norm(weights - image.mean(axis=(0, 1), dtype=np.float32) / 255, axis=1)
    scores = np.exp(-8 * distance)
    scores /= scores.sum()
    names = list(COLOURS)
    return [{"label": names[i], "score": round(float(scores[i]), 3)} for i in np.argsort(-scores)[:top]]
