"""What parameters may be, by their names; a method may narrow a range in its own ``_check_params``."""

from collections.abc import Callable

Range = tuple[Callable[[float], bool], str]

_AT_LEAST_1 = (
    "p max_epochs batch_size n_samples n_steps n_operator_steps n_filters channel_winners pool stride n_patches"
)
_AT_LEAST_0 = "penalty weight_decay spread orthogonality quantisation independence balance n_rounds n_iterations"
_ABOVE_0 = "learning_rate filter_learning_rate expansion init_std init_norm"

RANGES: dict[str, Range] = {
    **dict.fromkeys(_AT_LEAST_1.split(), (lambda v: v >= 1, "must be at least 1")),
    **dict.fromkeys(_AT_LEAST_0.split(), (lambda v: v >= 0, "must not be negative")),
    **dict.fromkeys(_ABOVE_0.split(), (lambda v: v > 0, "must be positive")),
    **dict.fromkeys(["activity", "fan_in"], (lambda v: 0 < v <= 1, "must lie in (0, 1]")),
    "max_epochs": (lambda v: v is None or v >= 1, "must be at least 1"),
    "momentum": (lambda v: 0 <= v < 1, "must lie in [0, 1)"),
    "percentile": (lambda v: 0 <= v < 50, "must lie in [0, 50)"),
    "reduction": (lambda v: v in ("max", "mean", "implicit"), "must be max, mean or implicit"),
    "start": (lambda v: v in ("normal", "rows"), "must be normal or rows"),
}
