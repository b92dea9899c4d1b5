"""Images, features and a network, all made up."""

import numpy as np
import torch

from biohash_mini.datasets.networks import build


def pictures(n=6, height=32, width=32, seed=0):
    """Return smooth colour images, uint8 (n, 3, height, width)."""
    rng = np.random.default_rng(seed)
    coarse = torch.from_numpy(rng.uniform(0, 255, (n, 3, 5, 5)))
    smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic").clamp(0, 255)
    return smooth.round().to(torch.uint8).numpy()


class Tiny(torch.nn.Sequential):
    """A network that counts its calls."""

    def __init__(self):
        torch.manual_seed(0)
        super().__init__(torch.nn.Conv2d(3, 4, 5, stride=3), torch.nn.ReLU(), torch.nn.Flatten())
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


def rows(n=40, d=5):
    """Return features made up, n // 10 of each class."""
    X = np.random.default_rng(0).random((n, d)).astype(np.float16)
    return {"X": X, "labels": np.repeat(np.arange(10, dtype=np.uint8), n // 10)}


def killed_network():
    """Return AlexNet with the same random weights in every process."""
    torch.manual_seed(0)
    return build("alexnet", "pooled")
