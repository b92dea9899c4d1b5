"""What else a sparse code is good for: inner products, read-outs that do not forget, novelty."""

from __future__ import annotations

from functools import partial
from typing import Any

from .. import novelty, products, protocols, readouts
from ..experiment import Experiment, Row

_CHAPTER = "22_other_uses"
_UNITS = 1000  # of a layer of read-outs and filters
_INPUTS = {"mnist": 784, "cifar10": 3072}
_DENSE, _SPARSE = (64, 128, 256), (8, 16, 32)
_LABELS = (readouts.few_shots, readouts.one_by_one)
_FORMS = {"": "plain", ", directions": "direction", ", augmented": "augmented"}


def _layer(m: int) -> dict[str, Any]:
    """Return what makes one layer of m units serve every hash length."""
    return {"params": {"activity": 16 / m}, "fit_length": 16}


def _fly(data: str, m: int = _UNITS) -> dict[str, Any]:
    return {"params": {"expansion": m / _INPUTS[data], "center": True}}


def _inner(units: int) -> tuple[Row, ...]:
    """Return rows for each form of the vectors."""
    rows: list[Row] = []
    for words, kind in _FORMS.items():
        task = partial(products.inner_task, kind=kind)
        metric = products.by_norm if kind == "direction" else None
        extras = (products.engines,) if kind == "plain" else ()
        given: dict[str, Any] = {"task": task, "metric": metric}
        rows += [
            Row(f"LSH{words}", "LSH", {"center": False}, hash_lengths=_DENSE, extras=extras, **given),
            Row(f"FlyHash{words}", "FlyHash", {"center": True}, hash_lengths=_SPARSE, seeds=1, **given),
            Row(f"BioHash{words}", "BioHash", _layer(units)["params"], hash_lengths=_SPARSE, fit_length=16, **given),
        ]
    return tuple(rows)


EXPERIMENTS = (
    *(
        Experiment(
            f"inner-{data}",
            f"Largest inner products {of}: ten found among the first 100",
            _CHAPTER,
            data,
            _inner(units),
            task=partial(products.inner_task, kind="plain"),
            metric=products.inner_recall,
            hash_lengths=(*_SPARSE, *_DENSE),
        )
        for data, of, units in (("glove", "of GloVe's words", 1000), ("ratings", "of MovieLens's factors", 128))
    ),
    *(
        Experiment(
            f"readout-{data}",
            f"A linear read-out of codes, {words}: accuracy",
            _CHAPTER,
            data,
            (
                Row("BioHash, m=200", "BioHash", **_layer(200)),
                Row("BioHash, m=1000", "BioHash", **_layer(_UNITS), extras=(readouts.before_the_code, *_LABELS)),
                Row("FlyHash, m=1000", "FlyHash", **_fly(data), extras=_LABELS),
            ),
            task=protocols.retrieval_task,
            metric=readouts.read_out,
            hash_lengths=(1, 4, 16, 64),
            seeds=1,
        )
        for data, words in (("mnist", "MNIST"), ("cifar10", "CIFAR-10"))
    ),
    *(
        Experiment(
            f"novelty-{data}",
            f"The fly's filter for novelty, five classes of {words} held out: area under the ROC curve",
            _CHAPTER,
            data,
            (
                Row("BioHash", "BioHash", **_layer(_UNITS)),
                Row("FlyHash", "FlyHash", **_fly(data)),
            ),
            task=novelty.novelty_task,
            metric=novelty.novelty,
            extras=(novelty.by_distance,),
            hash_lengths=(32,),
            seeds=seeds,
        )
        for data, words, seeds in (("mnist", "MNIST", 5), ("cifar10", "CIFAR-10", 2))
    ),
)
