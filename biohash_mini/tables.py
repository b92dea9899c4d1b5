"""The paper's tables and figures as declarations."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from . import choices, images, measures, words
from .images import training_row
from .measures import METHODS, Cell, activity_row


@dataclass(frozen=True)
class Experiment:
    """One table or figure: what is measured, on which data, for which cells.

    Parameters
    ----------
    name : str
        Name of the results file, and of the paper's table where there is one.
    title : str
        What it shows, in a line.
    data : str
        Data set.
    measure : callable (experiment, cell, profile) -> {row: values}
        Measures a cell; most give one row, the method's own.
    hash_lengths : tuple of int
        Columns.
    seeds : int
        Repetitions, with seeds 0, 1, …
    methods : tuple of str, optional
        Rows; by default all of :data:`~biohash_mini.measures.METHODS`.
    also : tuple of str
        Rows of :data:`~biohash_mini.measures.RIVALS` beside them.
    at : int, optional
        R of mAP@R; by default the whole ranking.
    once : set of (method, hash_length)
        Cells that take so long that one seed must do.
    skip : set of (method, hash_length)
        Cells that are not part of the table.
    rows : callable method -> tuple of str
        The rows that one cell of a method fills.
    unit : str
        "%" for values that are compared with the paper in points; "s" for seconds, which are not.
    higher_is_better : bool
        Whether a value above the paper's counts as reproduced however far above it is.
    """

    name: str
    title: str
    data: str
    measure: Callable[["Experiment", Cell, str], dict[str, dict]]
    hash_lengths: tuple[int, ...] = (2, 4, 8, 16, 32, 64)
    seeds: int = 3
    methods: tuple[str, ...] = ()
    also: tuple[str, ...] = field(default=(), kw_only=True)
    at: int | None = None
    once: frozenset[tuple[str, int]] = frozenset()
    skip: frozenset[tuple[str, int]] = frozenset()
    rows: Callable[[str], tuple[str, ...]] = lambda method: (method,)
    unit: str = "%"
    higher_is_better: bool = True

    def cells(self) -> Iterator[Cell]:
        """Yield every cell, the first seed of all before the second."""
        for seed in range(self.seeds):
            for k in self.hash_lengths:
                for method in (*(self.methods or METHODS), *self.also):
                    if (method, k) not in self.skip and (seed == 0 or (method, k) not in self.once):
                        yield Cell(method, k, seed)


_TO_32 = (2, 4, 8, 16, 32)
_PATCHES = (400, 1_000, 2_000, 10_000, 50_000, 400_000)
_NETWORKS = {"vgg16": "VGG16", "vgg16bn": "VGG16BN", "alexnet": "AlexNet"}
_ACTIVITIES = tuple(map(activity_row, (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2)))
_CONV_AT_64 = frozenset({("BioConvHash", 64)})
_LONG = frozenset((*(("BioHash", k) for k in (16, 32, 64)), *(("BioConvHash", k) for k in _TO_32)))  # over 20 minutes
_DECLARED = (
    Experiment(
        "mnist",
        "MNIST, mAP@All",
        "mnist",
        measures.class_retrieval,
        seeds=5,
        also=("DH", "UH-BNN"),
        once=frozenset((method, k) for method in ("BioConvHash", "DH", "UH-BNN") for k in (*_TO_32, 64)),
        skip=_CONV_AT_64 | {("UH-BNN", 64), *((method, k) for method in ("DH", "UH-BNN") for k in (2, 4, 8))},
    ),
    Experiment(
        "cifar10",
        "CIFAR-10, mAP@1000",
        "cifar10",
        measures.class_retrieval,
        at=1000,
        once=_LONG,
        skip=_CONV_AT_64,
    ),
    *(
        Experiment(
            f"channel-inhibition-{data}",
            f"BioConvHash with k_CI channels active at a position, {name}",
            data,
            measure,
            (2, 4, 8, 16),
            1,
            ("1", "5", "10", "25", "100"),
            at,
        )
        for data, name, measure, at in (
            ("mnist", "MNIST, mAP@All", images.channel_inhibition, None),
            (
                "cifar10",
                "CIFAR-10, 10,000 images in the database, a = 5%, mAP@1000",
                images.inhibition_on_part,
                1000,
            ),
        )
    ),
    *(
        Experiment(
            f"channels-validation-{data}",
            f"The choice of k_CI: validation split of {name}",
            data,
            images.validation_channels,
            (2,),
            1,
            rows,
            at,
        )
        for data, name, rows, at in (
            ("mnist", "MNIST, 10,000 digits in the database, mAP@All", ("1", "5", "10", "25", "100"), None),
            ("cifar10", "CIFAR-10, 49,000 images in the database, mAP@1000", ("1", "5", "10"), 1000),
        )
    ),
    Experiment(
        "filter-training-mnist",
        "BioConvHash as its filters learn from more patches, MNIST with 10,000 digits in the database, mAP@All",
        "mnist",
        images.filter_training,
        (2,),
        1,
        tuple(training_row(winners, patches) for patches in _PATCHES for winners in (1, 10, 100)),
    ),
    Experiment(
        "centring-mnist",
        "BioConvHash with and without centring of its features, MNIST with 10,000 digits in the database, mAP@All",
        "mnist",
        images.centring,
        (2,),
        1,
        tuple(f"k_CI={winners}, {how}" for winners in (1, 10, 100) for how in ("centred", "not centred")),
    ),
    Experiment(
        "layer-step-mnist",
        "BioConvHash whose layer takes the max step, MNIST with 10,000 digits in the database, mAP@All",
        "mnist",
        images.layer_step,
        (2,),
        1,
        tuple(f"k_CI={winners}, {passes} passes" for winners in (1, 10, 100) for passes in (5, 20)),
    ),
    Experiment(
        "shadows",
        "CIFAR-10 with shadows on the queries, mAP@1000",
        "cifar10",
        images.shadows,
        seeds=1,
        also=(*images.ON_FEATURES, "GreedyHash on pixels"),
        at=1000,
        skip=_CONV_AT_64,
    ),
    Experiment(
        "shadow-sides",
        "CIFAR-10 with shadows on the queries: which 80% of an image lie in shadow, mAP@1000",
        "cifar10",
        images.shadow_sides,
        (2,),
        1,
        tuple(f"{method}, {side}" for method in ("BioHash", "BioConvHash") for side in images.SIDES),
        1000,
    ),
    Experiment(
        "sparsity-mnist",
        "Activity against mAP@All on the validation split of MNIST (figure 4)",
        "mnist",
        measures.validation_activity,
        _TO_32,
        1,
        tuple(map(activity_row, (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3))),
    ),
    Experiment(
        "sparsity-cifar10",
        "Activity against mAP@1000 on the validation split of CIFAR-10 (figure 4)",
        "cifar10",
        measures.validation_activity,
        _TO_32,
        1,
        _ACTIVITIES,
        at=1000,
    ),
    *(
        Experiment(
            f"cifar10-{network}",
            f"CIFAR-10, {label} features, mAP@1000 (ours: pooled convolutions, the paper's: fc7; not like for like)",
            f"cifar10-{network}",
            images.on_features,
            also=("GreedyHash",) if network == "vgg16" else (),
            at=1000,
            once=frozenset({("BioHash", 64)}),
            skip=frozenset(("BioConvHash", k) for k in (*_TO_32, 64)),
        )
        for network, label in _NETWORKS.items()
    ),
    *(
        Experiment(
            f"sparsity-cifar10-{network}",
            f"Activity against mAP@1000 on the validation split of CIFAR-10, {label} features",
            f"cifar10-{network}",
            measures.validation_activity,
            (2, 4, 8, 16),
            1,
            _ACTIVITIES,
            at=1000,
        )
        for network, label in _NETWORKS.items()
    ),
    *(
        Experiment(
            f"map-kinds-{network}",
            f"BioHash on what can be made of {_NETWORKS[network]}'s last map, validation split of CIFAR-10, mAP@1000",
            f"cifar10-{network}",
            images.map_kinds,
            (2, 4, 8),
            1,
            images.KINDS,
            at=1000,
        )
        for network in ("vgg16", "alexnet")
    ),
    Experiment(
        "smoothness",
        "Functional smoothness on MNIST, Pearson's r",
        "mnist",
        measures.smoothness,
        _TO_32,
        methods=("BioHash", "LSH"),
        rows=lambda method: (f"{method} top", f"{method} bottom"),
        higher_is_better=False,
    ),
    Experiment(
        "solhash",
        "MNIST, mAP@100, the 100 nearest in pixel space are relevant",
        "mnist",
        measures.pixel_neighbours,
        also=("SOLHash",),
        at=100,
        skip=frozenset(("BioConvHash", k) for k in (*_TO_32, 64)),
    ),
    *(
        Experiment(
            f"glove-{metric}",
            f"GloVe, {name} neighbours: AP over the first 10, query kept, divided by 10 (printed as mAP@100)",
            "glove",
            words.word_neighbours,
            seeds=10,
            skip=frozenset(("BioConvHash", k) for k in (*_TO_32, 64)),
        )
        for metric, name in (("euclidean", "Euclidean"), ("cosine", "cosine"))
    ),
    Experiment(
        "schedule-glove",
        "When BioHash stops learning, scored as in the tables of GloVe on a part of the words it may learn from",
        "glove",
        words.validation_schedule,
        (2, 4, 8, 16),
        1,
        tuple(words.SCHEDULES),
    ),
    Experiment(
        "training-time",
        "Seconds of training, MNIST",
        "mnist",
        measures.training_time,
        _TO_32,
        1,
        ("BioHash", "BioConvHash", "GreedyHash", "SOLHash"),
        unit="s",
    ),
    Experiment(
        "training-time-cifar10-vgg16",
        "Seconds of training on features of VGG16, CIFAR-10",
        "cifar10-vgg16",
        measures.training_time,
        _TO_32,
        1,
        ("BioHash", "GreedyHash"),
        unit="s",
    ),
    Experiment(
        "choices-mnist",
        "What each choice that the paper leaves open does to mAP@All on MNIST",
        "mnist",
        choices.measure,
        (2, 8),
        methods=tuple(choices.CHOICES),
        once=frozenset((row, 8) for row in choices.CHOICES),
    ),
    Experiment(
        "readings-mnist",
        "BioHash on MNIST, mAP@All, under other readings of the paper",
        "mnist",
        choices.measure,
        _TO_32,
        methods=choices.READINGS,
    ),
    Experiment(
        "tsne-mnist",
        "Purity of the 10 nearest neighbours in a tSNE of the codes, m = 160 (figure 5)",
        "mnist",
        measures.tsne,
        (2, 4, 8, 16, 32, 64),
        methods=("BioHash",),
    ),
)
EXPERIMENTS: dict[str, Experiment] = {e.name: e for e in _DECLARED}
