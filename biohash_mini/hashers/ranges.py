"""What parameters may be, by their names; a method may narrow a range in its own ``_check_params``."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..inputs import is_number, is_whole, require

LARGEST = 1 << 31  # of whole numbers, but for seeds: what no machine could serve is a slip of the pen


def are_counts(value: object) -> bool:
    """Return whether a value is a sequence of integers of at least 1."""
    return isinstance(value, Sequence | np.ndarray) and all(is_whole(v) and 1 <= v <= LARGEST for v in value)


def _is_number_or_numbers(value: object) -> bool:
    return is_number(value) or (isinstance(value, Sequence | np.ndarray) and all(map(is_number, value)))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


class Range(NamedTuple):
    """What a parameter may be: a kind of value and, among those, the allowed ones; each with its words."""

    is_kind: Callable[[Any], bool]
    kind: str
    allowed: Callable[[Any], bool] = lambda value: True
    words: str = ""

    def check(self, name: str, value: object) -> None:
        """Raise ValueError, which names the value and what is allowed, for any other value."""
        require(self.is_kind(value), f"{name} must be {self.kind}, got {value!r}")
        require(self.allowed(value), f"{name} must {self.words}, got {value!r}")


def _whole(least: int, most: int = LARGEST) -> Range:
    words = f"be at least {least}" if most == LARGEST else f"lie in [{least}, {most}]"
    return Range(is_whole, "an integer", lambda v: least <= v <= most, words)


def _real(allowed: Callable[[float], bool] = lambda v: True, words: str = "") -> Range:
    return Range(is_number, "a finite number", allowed, words)


def _one_of(*choices: str) -> Range:
    words = f"be {', '.join(choices[:-1])} or {choices[-1]}"
    return Range(_is_text, words.removeprefix("be "), lambda v: v in choices, words)


_COUNTS = "max_epochs filter_epochs batch_size n_samples n_steps n_operator_steps n_filters channel_winners pool stride"
_NOT_NEGATIVE = "penalty weight_decay spread orthogonality quantisation independence balance norm_tol"
_POSITIVE = "learning_rate filter_learning_rate expansion init_std init_norm"

RANGES: dict[str, Range] = {
    "hash_length": Range(
        lambda v: is_whole(v) and v >= 1, "an integer of at least 1", lambda v: v <= LARGEST, f"be at most {LARGEST}"
    ),
    **dict.fromkeys([*_COUNTS.split(), "n_patches"], _whole(1)),
    **dict.fromkeys(["n_rounds", "n_iterations"], Range(is_whole, "an integer", lambda v: v >= 0, "not be negative")),
    "window": _whole(2),
    "anti_rank": Range(is_whole, "an integer"),
    "seed": _whole(-(1 << 63), (1 << 64) - 1),  # what torch takes
    **dict.fromkeys(_NOT_NEGATIVE.split(), _real(lambda v: v >= 0, "not be negative")),
    **dict.fromkeys(_POSITIVE.split(), _real(lambda v: v > 0, "be positive")),
    **dict.fromkeys(["activity", "fan_in"], _real(lambda v: 0 < v <= 1, "lie in (0, 1]")),
    "p": _real(lambda v: v >= 1, "be at least 1"),
    "delta": Range(_is_number_or_numbers, "a finite number"),
    "momentum": _real(lambda v: 0 <= v < 1, "lie in [0, 1)"),
    "percentile": _real(lambda v: 0 <= v < 50, "lie in [0, 50)"),
    "reduction": _one_of("max", "mean", "implicit"),
    "start": _one_of("normal", "rows"),
    "device": Range(_is_text, "a text"),
    **dict.fromkeys(
        ["center", "relative_rate", "smooth", "normalize", "verbose"],
        Range(lambda v: isinstance(v, bool | np.bool_), "True or False"),
    ),
}
