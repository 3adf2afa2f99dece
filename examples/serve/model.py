"""A small PyTorch model that knows nothing of its host: it names the colour of images."""

import torch

COLOURS = {
    "red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "yellow": (255, 255, 0), "black": (0, 0, 0), "white": (255, 255, 255),
}


class Colour(torch.nn.Module):
    """Gives the probability of each colour, for images of height, width and three channels."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, len(COLOURS))
        colours = torch.tensor(list(COLOURS.values())) / 255
        with torch.no_grad():  # nothing to train here: of all colours c, the nearest to m has the largest 2 c m - c²
            self.linear.weight.copy_(8 * colours)
            self.linear.bias.copy_(-4 * colours.square().sum(dim=1))

    def forward(self, images):
        return self.linear(images.float().mean(dim=(1, 2)) / 255).softmax(dim=1)


model = Colour().eval()
names = list(COLOURS)


@torch.inference_mode()
def classify(images: torch.Tensor, top=3):
    """Gives the most likely colours of each image, with their probabilities."""
    scores, classes = model(images).topk(top)
    return [
        [{"label": names[c], "score": round(s, 3)} for c, s in zip(*image)] for image in zip(classes.tolist(), scores.tolist())
    ]
