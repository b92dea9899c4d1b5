"""Features of images from networks trained on ImageNet: VGG16, VGG16-BN and AlexNet, at fc7 or after the convolutions.

The stacks have torchvision's layers and parameter names, and :func:`preprocess` its transforms, so that its weights
serve unchanged; torchvision itself is not needed. fc7 takes the canonical weights, which are downloaded. For the
convolutions a file ``alexnet_features_imagenet.safetensors`` (or ``vgg16_…``) in the folder ``BIOHASH_DATA`` will do.
"""

import hashlib
import os
import shutil
from collections import OrderedDict
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional
from tqdm.auto import tqdm

from ..inputs import require, torch_device
from ..storage import digest, load_arrays, save_arrays
from .optional import optional
from .sources import cache_folder, cache_path
from .tasks import load

LAYERS = ("fc7", "pool5", "pooled")
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as torchvision's weights expect them
_URL = "https://download.pytorch.org/models/"
#: Canonical file of each network, and the SHA-256 that it must begin with; of that of VGG16-BN only the digits in its
#: name are published.
CANONICAL = {
    "vgg16": ("vgg16-397923af.pth", "397923af8e79cdbb6a7127f12361acd7a2f83e06b05044ddf496e83de57a5bf0"),
    "vgg16bn": ("vgg16_bn-6c64b313.pth", "6c64b313"),
    "alexnet": ("alexnet-owt-7be5be79.pth", "7be5be791159472b1fbf3c69796f7cb30dca7ad8466c2df70058c37116cdee02"),
}
NETWORKS = tuple(CANONICAL)
#: SHA-256 of the parameters in the files of convolutions.
CONVOLUTIONS = {
    "vgg16": "d48f58800a51b46ff4222766e6e656472521294ea75808e4c73d367c7a1fa735",
    "alexnet": "9dafbdc96642de6f3efac77e63df505aba2312fdfe3a851653b3408c02f1a2df",
}


def _alexnet_convolutions() -> nn.Sequential:
    """Return AlexNet's five convolutions: (n, 3, 224, 224) to (n, 256, 6, 6)."""
    first = [nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2)]
    second = [nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2)]
    small: list[nn.Module] = []
    for before, width in pairwise((192, 384, 256, 256)):
        small += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU(inplace=True)]
    return nn.Sequential(*first, *second, *small, nn.MaxPool2d(3, stride=2))


def _vgg16_convolutions(batch_norm: bool) -> nn.Sequential:
    """Return VGG16's thirteen convolutions: (n, 3, 224, 224) to (n, 512, 7, 7)."""
    layers: list[nn.Module] = []
    channels = 3
    for width, depth in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(depth):
            norm = [nn.BatchNorm2d(width)] if batch_norm else []
            layers += [nn.Conv2d(channels, width, 3, padding=1), *norm, nn.ReLU(inplace=True)]
            channels = width
        layers.append(nn.MaxPool2d(2, stride=2))
    return nn.Sequential(*layers)


def build(name: str, layer: str) -> nn.Sequential:
    """Return a network in evaluation mode, with random weights, that maps images (n, 3, h, w) to features (n, d).

    Parameters
    ----------
    name : {"vgg16", "vgg16bn", "alexnet"}
    layer : {"fc7", "pool5", "pooled"}
        The second fully connected layer after its ReLU (d = 4,096); the map after the last convolution and its max
        pooling, flattened (d = 9,216 for AlexNet and 25,088 for VGG16 at 224 pixels); the mean of that map over its
        positions (d = 256 and 512).
    """
    if name not in NETWORKS or layer not in LAYERS:
        raise ValueError(f"no layer {layer!r} of {name!r}; choose one of {', '.join(LAYERS)} of {', '.join(NETWORKS)}")
    alexnet = name == "alexnet"
    parts: OrderedDict[str, nn.Module] = OrderedDict()
    parts["features"] = _alexnet_convolutions() if alexnet else _vgg16_convolutions(name == "vgg16bn")
    if layer != "pool5":
        parts["avgpool"] = nn.AdaptiveAvgPool2d(1 if layer == "pooled" else 6 if alexnet else 7)
    parts["flatten"] = nn.Flatten()
    if layer == "fc7":
        fc6 = [nn.Dropout(), nn.Linear(256 * 36, 4096)] if alexnet else [nn.Linear(512 * 49, 4096)]
        parts["classifier"] = nn.Sequential(*fc6, nn.ReLU(), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU())
    return nn.Sequential(parts).eval()


def canonical_weights(name: str) -> dict[str, Tensor]:
    """Return torchvision's state dict of a network, from ``BIOHASH_DATA`` or the cache, else downloaded; checked."""
    file, sha256 = CANONICAL[name]
    folders = [Path(f) for f in (os.environ.get("BIOHASH_DATA"), cache_folder()) if f]
    path = next((folder / file for folder in folders if (folder / file).is_file()), None)
    if path is None:
        pooch = optional("pooch", extra="data")
        http = pooch.HTTPDownloader(progressbar=True, timeout=15)
        path = Path(pooch.retrieve(_URL + file, None, fname=file, path=folders[-1], downloader=http))
    with path.open("rb") as stream:
        intact = hashlib.file_digest(stream, "sha256").hexdigest().startswith(sha256)
    require(intact, f"{path} is not the published file: its SHA-256 does not begin with {sha256}; remove it")
    return torch.load(path, map_location="cpu", weights_only=True)


def weights(name: str, layer: str) -> dict[str, Tensor]:
    """Return a state dict with the parameters of :func:`build`; fc7 takes the canonical file, all others any source."""
    local = Path(os.environ.get("BIOHASH_DATA") or ".") / f"{name}_features_imagenet.safetensors"
    if layer == "fc7" or not local.is_file():
        return canonical_weights(name)
    state = load_file(local)
    if (sha := digest({key: value.numpy() for key, value in state.items()})) != CONVOLUTIONS.get(name, sha):
        raise ValueError(f"{local} does not hold the published convolutions of {name}")
    return state


def pretrained(name: str, layer: str) -> nn.Sequential:
    """Return the network of :func:`build` with its ImageNet weights."""
    network = build(name, layer)
    state = weights(name, layer)
    network.load_state_dict({key: state[key] for key in network.state_dict() if key in state})
    return network


def preprocess(images: Tensor, side: int = 224) -> Tensor:
    """Return uint8 images (n, 3, h, w) as a network sees them, float32 of shape (n, 3, side, side).

    These are the transforms of torchvision's weights: the shorter side becomes 256 pixels (8/7 of ``side``) by
    antialiased bilinear interpolation, rounded to whole levels; the centre is cut out; levels are divided by 255 and
    normalised with ``MEAN`` and ``STD``.
    """
    height, width = images.shape[-2:]
    scaled = round(side * 8 / 7)
    size = [int(scaled * edge / min(height, width)) for edge in (height, width)]
    X = functional.interpolate(images.to(torch.float32), size, mode="bilinear", align_corners=False, antialias=True)
    top, left = (round((edge - side) / 2) for edge in size)
    X = X.round()[..., top : top + side, left : left + side] / 255
    mean, std = (torch.tensor(values, device=X.device).view(3, 1, 1) for values in (MEAN, STD))
    return (X - mean) / std


def extract(
    images: np.ndarray,
    network: nn.Module,
    path: str | os.PathLike,
    *,
    side: int = 224,
    batch_size: int = 50,
    device: str = "auto",
    also: Mapping[str, np.ndarray] | None = None,
    about: Mapping[str, object] | None = None,
    verbose: bool = True,
) -> Path:
    """Write the features of images, X (n, d) float16, to a safetensors file with its checksum, and return the file.

    Every batch is kept in a folder beside the file until all are there. A run that was killed goes on after its last
    batch, and ends with the same arrays as one that was not, because batches are the same and none is computed twice.
    Two processes may do so at once.

    Parameters
    ----------
    images : uint8 array of shape (n, 3, h, w)
    network : module
        Maps preprocessed images to features (n, d).
    path : path
        File to write; nothing is computed if it holds the same features already.
    side, batch_size : int >= 1
        Pixels of the square that the network sees, and images at a time.
    device : str
        "auto", "cpu", "cuda" or "mps".
    also, about : mapping
        Arrays, such as labels, and facts to be stored with the features.
    verbose : bool
        Whether to show a progress bar.
    """
    require(side >= 1 and batch_size >= 1, f"side and batch_size must be at least 1, got {side} and {batch_size}")
    path, target = Path(path), torch_device(device)
    state = {key: value.cpu().numpy() for key, value in network.state_dict().items()}
    origin = {"images": digest({"images": images}), "weights": digest(state), "side": side, "batch_size": batch_size}
    facts = {**(about or {}), **origin}
    if path.exists():
        if _stored(path, facts) is None:
            raise ValueError(f"{path} is damaged or holds features of another kind; move it away to extract anew")
        return path
    folder = path.with_suffix(".parts")
    network = network.eval().to(target, memory_format=torch.channels_last)  # type: ignore[call-overload]  # a fifth less time on a CPU
    parts = []
    for start in tqdm(range(0, len(images), batch_size), desc=path.stem, unit="batch", disable=not verbose):
        part, here = folder / f"{start:08d}.safetensors", {**facts, "start": start}
        if (X := _stored(part, here)) is None:
            batch = torch.from_numpy(images[start : start + batch_size]).to(target)
            with torch.inference_mode():
                X = network(preprocess(batch, side)).to(torch.float16).cpu().numpy()
            try:
                save_arrays(part, {"X": X}, **here)
            except OSError:
                if _stored(path, facts) is None:
                    raise
                break  # another process was faster, and has removed the folder
        parts.append(X)
    else:
        save_arrays(path, {"X": np.concatenate(parts), **(also or {})}, **facts)
    shutil.rmtree(folder, ignore_errors=True)
    return path


def _stored(path: Path, facts: Mapping[str, object]) -> np.ndarray | None:
    """Return X of a file if it is intact and was made from the same origin."""
    try:
        arrays, about = load_arrays(path)
    except (FileNotFoundError, ValueError):
        return None
    return arrays["X"] if about == facts else None


def extract_cifar10(
    name: str, layer: str = "pooled", path: str | os.PathLike | None = None, *, profile: str = "full", **options: Any
) -> Path:
    """Extract the features of CIFAR-10 and return their file, by default where ``load("cifar10-NAME", "full")`` looks.

    ``options`` are ``side``, ``batch_size``, ``device`` and ``verbose`` of :func:`extract`.
    """
    network, data = pretrained(name, layer), load("cifar10", profile)
    images = data.X.reshape(-1, *data.image_shape)
    about = {"network": name, "layer": layer, "data": "cifar10", "profile": profile}
    path = path or cache_path(f"cifar10-{name}-{layer}" + ("" if profile == "full" else f"-{profile}"))
    return extract(images, network, path, also={"labels": data.labels}, about=about, **options)
