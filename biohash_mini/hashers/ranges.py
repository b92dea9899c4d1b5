"""What parameters may be, by their names; a method may narrow a range in its own ``_check_params``."""

from collections.abc import Callable

Range = tuple[Callable[[float], bool], str]

_SHARE: Range = (lambda v: 0 < v <= 1, "must lie in (0, 1]")
_COUNT: Range = (lambda v: v >= 1, "must be at least 1")
_POSITIVE: Range = (lambda v: v > 0, "must be positive")
_WEIGHT: Range = (lambda v: v >= 0, "must not be negative")
_AT_LEAST_1 = (
    "p max_epochs batch_size n_samples n_steps n_operator_steps n_filters channel_winners pool stride n_patches"
)
_AT_LEAST_0 = "penalty weight_decay spread orthogonality quantisation independence balance n_rounds n_iterations"

RANGES: dict[str, Range] = {
    **dict.fromkeys(["activity", "fan_in"], _SHARE),
    **dict.fromkeys([*_AT_LEAST_1.split(), "channel_winners", "pool", "stride"], _COUNT),
    **dict.fromkeys(["learning_rate", "filter_learning_rate", "expansion", "init_std", "init_norm"], _POSITIVE),
    **dict.fromkeys(_AT_LEAST_0.split(), _WEIGHT),
    "max_epochs": (lambda v: v is None or v >= 1, "must be at least 1"),
    "momentum": (lambda v: 0 <= v < 1, "must lie in [0, 1)"),
    "percentile": (lambda v: 0 <= v < 50, "must lie in [0, 50)"),
    "reduction": (lambda v: v in ("max", "mean", "implicit"), "must be max, mean or implicit"),
    "start": (lambda v: v in ("normal", "rows"), "must be normal or rows"),
}
