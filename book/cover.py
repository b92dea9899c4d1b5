"""What the cover says, read from the records: where BioHash is first, which tables match the paper, what surprises."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from biohash_mini.reproduction import figures
from biohash_mini.reproduction.paper import TABLES
from biohash_mini.reproduction.plots import COLORS, use_style

from .report_page import gains

NAMES = {  # the tables that rank methods or compare values, as the cover calls them
    "mnist": "MNIST",
    "cifar10": "CIFAR-10 pixels",
    "cifar10-vgg16": "VGG16 features",
    "cifar10-alexnet": "AlexNet features",
    "glove-euclidean": "words (Euclidean)",
    "glove-cosine": "words (cosine)",
    "solhash": "pixel neighbours",
    "shadows": "photographs in shadow",
    "smoothness": "near and far pairs",
    "channel-inhibition-mnist": "channel inhibition (MNIST)",
    "channel-inhibition-cifar10": "channel inhibition (CIFAR-10)",
}
LENGTH = 16  # the hash length of the picture
FAMILY = ("BioHash", "BioConvHash", "NaiveBioHash")


def lead(cells: list[dict], name: str, hash_length: int, field: str) -> float | None:
    """Return by how many points BioHash is ahead of the best other method of a table, by "paper" or "ours"."""
    found = {c["method"]: c[field] for c in cells if c["hash_length"] == hash_length and c[field] is not None}
    rivals = [value for method, value in found.items() if method in TABLES[name].rows and method not in FAMILY]
    return found["BioHash"] - max(rivals) if rivals and "BioHash" in found else None


def matches(cells: list[dict]) -> str:
    """Return how a table compares: it "matches", does so "mostly" or does "not", or it is "unlike" the paper's."""
    n = Counter(c["verdict"] for c in cells if c["paper"] is not None)
    judged = n["reproduced"] + n["above"] + n["close"] + n["deviates"]
    if judged <= n["not like for like"]:
        return "unlike" if n["not like for like"] else "missing"
    if not n["deviates"] and n["close"] <= 0.2 * judged:
        return "matches"
    return "mostly" if n["deviates"] <= 0.15 * judged else "not"


def words(cells: dict[str, list[dict]]) -> str:
    """Return the answers in a few lines, as MyST."""
    places = [(name, k) for name in NAMES for k in TABLES[name].hash_lengths]
    ours = {at: lead(cells[at[0]], *at, "ours") for at in places}
    both = {at: (lead(cells[at[0]], *at, "paper"), ours[at]) for at in places}
    both = {at: pair for at, pair in both.items() if None not in pair}
    first = [at for at, (_, value) in both.items() if value > 0]
    theirs = [at for at, (value, _) in both.items() if value > 0]
    by = {kind: [n for n in NAMES if matches(cells[n]) == kind] for kind in ("matches", "mostly", "not", "unlike")}
    ranked = {n: [ours[at] for at in both if at[0] == n] for n in NAMES}
    wins = [n for n, leads in ranked.items() if leads and min(leads) > 0]
    losses = [n for n, leads in ranked.items() if leads and max(leads) < 0]
    lines = [
        f"**Where is BioHash first?** At every hash length that we could rank on {_list(wins)}, and in {len(first)} of "
        f"{len(both)} comparisons over all tables ({len(theirs)} in print)."
        + f" On {_list(losses)} it is behind."
        * bool(losses),
        f"**Which tables match?** {_sentence(by['matches'])} agree with the paper's, and {_list(by['mostly'], True)} "
        "mostly do.",
        f"**Which do not?** {_sentence(by['not'])}."
        + f" Not judged are {_list(by['unlike'], True)}, as ours are another layer." * bool(by["unlike"]),
    ]
    rival = [both["solhash", k] for k in TABLES["solhash"].hash_lengths if ("solhash", k) in both]
    if rival:
        paper, here = ([pair[i] for pair in rival] for i in (0, 1))
        lines.append(
            f"**What surprised us?** SOLHash, printed {min(paper):.0f} to {max(paper):.0f} points behind BioHash, is "
            f"level with it once both are scored alike ({min(here):+.1f} to {max(here):+.1f}, "
            "[chapter 9](../notebooks/09_pixel_neighbours.ipynb))."
        )
    best = [g.score - max(filter(None, (g.printed, g.ours))) for g in gains(cells) if g.printed or g.ours]
    if best:
        lines.append(
            "**What beats it?** BioHash itself, if it reads the edges of pictures and not their pixels. At the same "
            f"bits it then gains at least {min(best):.1f} points ([chapter 21](../notebooks/21_better_codes.ipynb))."
        )
    return "\n".join(f"- {line}" for line in lines).replace("(-", "(−")


def _list(names: list[str], links: bool = False) -> str:
    texts = [f"[{NAMES[n]}](report-{n})" if links else NAMES[n] for n in names]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts) or "none"


def _sentence(names: list[str]) -> str:
    """Return the tables, linked, as a sentence begins."""
    text = _list(names, links=True)
    return f"[{text[1].upper()}{text[2:]}" if names else text.capitalize()


def picture(cells: dict[str, list[dict]]) -> Figure:
    """Return the lead of BioHash in every table that ranks it, the paper's and ours joined by a line."""
    pairs = {name: [lead(cells[name], name, LENGTH, field) for field in ("paper", "ours")] for name in NAMES}
    pairs = {name: pair for name, pair in pairs.items() if None not in pair}
    use_style()
    figure, ax = plt.subplots(figsize=(7.4, 0.6 + 0.32 * len(pairs)))
    for y, (paper, ours) in enumerate(pairs.values()):
        ax.plot([paper, ours], [y, y], color="#999999", lw=2, zorder=1)
        ax.plot(paper, y, "D", ms=6, mfc="none", mec=COLORS["BioHash"], label="" if y else "paper")
        ax.plot(ours, y, "o", ms=7, color=COLORS["BioHash"], label="" if y else "ours")
    ax.axvline(0, color="black", lw=1)
    ax.set_yticks(range(len(pairs)), [NAMES[name] for name in pairs])
    ax.set(xlabel="lead of BioHash (points)")
    ax.invert_yaxis()
    if pairs:
        ax.legend(loc="upper right")
    return figure


def page(cells: dict[str, list[dict]], folder: Path) -> str:
    """Write the picture into a folder and return what the cover says, as MyST."""
    place = folder / "_figures"
    place.mkdir(parents=True, exist_ok=True)
    figure = picture(cells)
    (place / "leads.svg").write_text(figures.svg(figure), "utf-8")
    if figures.restack(figure):
        (place / "leads.narrow.svg").write_text(figures.svg(figure), "utf-8")
    plt.close(figure)
    alt = "For each table a hollow diamond, the paper's lead of BioHash, joined to a dot, ours; a line marks zero."
    caption = (
        "BioHash leads in most tables, as the paper says, though in some of them by less. Its lead is over the best "
        f"other method of the same table, at a hash length of {LENGTH}. Right of the line it is first. The "
        "[report](report.md) has every value."
    )
    shown = f"```{{figure}} _generated/_figures/leads.svg\n:name: fig-leads\n:alt: {alt}\n\n{caption}\n```"
    return f"{words(cells)}\n\n{shown}\n"
