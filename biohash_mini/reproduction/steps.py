"""The commands that make a results file, as one would type them."""

from __future__ import annotations

from .declarations import EXPERIMENTS

#: How features of CIFAR-10 were made: the layer that was extracted, and the side of the square that the network saw.
EXTRACTED = {
    "cifar10-vgg16": ("pool5", 96),
    "cifar10-vgg16bn": ("pool5", 224),
    "cifar10-alexnet": ("pool5", 224),
}
#: Results files that are no experiment's: what they hold, and what makes them.
OTHERS = {
    "bench": ("Search, evaluation and training beside their peers, as ratios", "biohash bench"),
    "worth": ("When a hash is worth it: quality, bits, time, and what lists of units touch", "biohash worth"),
    "stress": ("Faults, malformed input and load: how often what we promise held", "make stress"),
}


def commands(name: str) -> list[str]:
    """Return the commands that make the results of a name, in order: features where its data are, then the run.

    Data sets that can be downloaded are fetched by the run itself.
    """
    if name in OTHERS:
        return [OTHERS[name][1]]
    exp = EXPERIMENTS[name]
    data = dict.fromkeys([exp.data, *(row.data for row in exp.all_rows())])
    made = ((each.removeprefix("cifar10-"), *EXTRACTED[each]) for each in data if each in EXTRACTED)
    features = [f"biohash features {network} --layer {layer} --side {side}" for network, layer, side in made]
    return [*features, f"biohash run {name} --profile full"]
