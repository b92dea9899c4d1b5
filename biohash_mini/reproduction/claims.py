"""What the text of a chapter relies on, checked while it runs: an error as it was written, a warning once adapted."""

import sys
import warnings
from typing import Any

from ..datasets import PROFILES
from ..inputs import count, require

_own: dict[str, Any] = {}  # the parameters of the chapter in this kernel


def written_for(**parameters: Any) -> None:
    """Note the parameters that the text of a chapter was written for, those of its cell tagged ``parameters``."""
    _own.clear()
    _own.update(parameters)


def claim(words: str, condition: object) -> None:
    """Check a sentence that the text relies on, and return nothing.

    A claim that fails raises an AssertionError while the chapter's parameters are those it was :func:`written_for`.
    Once a reader has changed one of them it warns instead, with the same words, and the chapter goes on. A profile or
    a seed that cannot be meant is a ValueError.
    """
    here = sys._getframe(1).f_globals
    if "profile" in _own and "profile" in here:
        one_of = f"profile must be one of {', '.join(PROFILES)}, got {here['profile']!r}"
        require(here["profile"] in PROFILES, one_of)
    if "seed" in _own and "seed" in here:
        count("seed", here["seed"], 0)
    if condition:
        return
    changed = [f"{name} = {here[name]!r}" for name, value in _own.items() if name in here and here[name] != value]
    if not changed:
        raise AssertionError(words)
    warnings.warn(f"With {', '.join(changed)} this no longer holds: {words}", stacklevel=2)
