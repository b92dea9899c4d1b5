"""Training time, the choices that the paper leaves open, and codes in the plane."""

from __future__ import annotations

from dataclasses import replace

from .. import protocols, scores
from ..choices import CHOICES, NEAREST
from ..experiment import Experiment
from .rows import CLASSES, TO_32, declared

EXPERIMENTS = (
    *(
        Experiment(
            name,
            title,
            "14_rivals",
            data,
            (
                declared("BioHash", data, extras=(scores.final_energy,)),
                *(declared(method, data) for method in others),
            ),
            task=protocols.retrieval_task,
            metric=scores.training_seconds,
            hash_lengths=TO_32,
            seeds=1,
            unit="s",
        )
        for name, title, data, others in (
            ("training-time", "Seconds of training, MNIST", "mnist", ("BioConvHash", "GreedyHash", "SOLHash")),
            (
                "training-time-cifar10-vgg16",
                "Seconds of training on features of VGG16, CIFAR-10",
                "cifar10-vgg16",
                ("GreedyHash",),
            ),
        )
    ),
    Experiment(
        "choices-mnist",
        "What each choice that the paper leaves open does to mAP@All on MNIST",
        "15_open_choices",
        "mnist",
        tuple(CHOICES.values()),
        extras=(scores.tie_orders,),
        hash_lengths=(2, 8),
        **CLASSES,
    ),
    Experiment(
        "readings-mnist",
        "BioHash on MNIST, mAP@All, under other readings of the paper",
        "15_open_choices",
        "mnist",
        tuple(replace(CHOICES[label], once=()) for label in NEAREST),
        extras=(scores.tie_orders,),
        hash_lengths=TO_32,
        **CLASSES,
    ),
    Experiment(
        "tsne-mnist",
        "Purity of the 10 nearest neighbours in a tSNE of the codes, m = 160 (figure 5)",
        "07_sparsity",
        "mnist",
        (declared("BioHash", "mnist", fit_length=8),),  # one layer of 8 / 5% = 160 units
        **CLASSES | {"metric": scores.purity},
    ),
)
