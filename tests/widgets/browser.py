"""What the browser tests of the widgets share: waiting, and looking at colours."""

import re
import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 10) -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def luminance(page, selector: str, quantity: str) -> float:
    """Return the sum of red, green and blue of a computed colour, 0 for black and 765 for white."""
    rgb = page.eval_on_selector(selector, f"(el) => getComputedStyle(el).{quantity}")
    return sum(float(v) for v in re.findall(r"[\d.]+", rgb)[:3])
