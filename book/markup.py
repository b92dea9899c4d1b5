"""Small words of HTML and of English that the generated pages share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def raw(*parts: str) -> str:
    """Return HTML as a part of a MyST page."""
    return "```{raw} html\n" + "\n".join(parts) + "\n```"


def scroll(label: str, rows: str, kind: str = "numbers") -> str:
    """Return a table in a frame of its own that scrolls sideways, by keyboard too."""
    frame = f'<div class="report-scroll" role="region" tabindex="0" aria-label="{escape(label)}">'
    return f'{frame}<table class="report {kind}">{rows}</table></div>'


def details(title: str, body: str) -> str:
    """Return a fold."""
    return f'<details class="report-more"><summary>{title}</summary>{body}</details>'


def row(tag: str, texts: Iterable[str]) -> str:
    """Return a row whose cells are all of one tag."""
    return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in texts)}</tr>"


def number(value: float | None) -> str:
    """Return a number with two decimals, an integer as it is, a dash for none."""
    return "–" if value is None else str(value) if isinstance(value, int) else f"{value:.2f}"


def many(n: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless it is one."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


def time(seconds: float) -> str:
    """Return a duration in the unit that suits it."""
    if seconds < 90:
        return many(round(seconds), "second")
    return f"{seconds / 3600:.1f} hours" if seconds > 5400 else f"{seconds / 60:.0f} minutes"


def listed(texts: Sequence[str], last: str = " and ") -> str:
    """Return the texts as a list within a sentence."""
    return last.join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
