"""Packages that only some functions need, imported when they are called."""

from importlib import import_module
from types import ModuleType


def optional(name: str, *, extra: str) -> ModuleType:
    """Return the package of that name; ImportError says which extra of biohash-mini brings it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ImportError(f'{name} is not installed: pip install "biohash-mini[{extra}]"') from error
