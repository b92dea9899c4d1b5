import dataclasses
import re
from pathlib import Path

import pytest

from biohash_mini import paper
from biohash_mini.paper import TABLES, Table

LATEX = Path(__file__).resolve().parents[2] / "shared" / "paper" / "biohash_icml2020.tex"
SECONDS = {"s": 1.0, "m": 60.0, "hrs": 3600.0}

# name: (table number, rows, columns, dashes)
SHAPES = {
    "mnist": (1, 10, 6, 9),
    "cifar10": (2, 8, 6, 2),
    "smoothness": (3, 4, 5, 0),
    "channel-inhibition-mnist": (4, 5, 4, 0),
    "channel-inhibition-cifar10": (4, 5, 4, 0),
    "cifar10-vgg16": (5, 11, 6, 10),
    "solhash": (6, 2, 6, 1),
    "glove-euclidean": (7, 6, 6, 0),
    "glove-cosine": (8, 6, 6, 0),
    "shadows": (9, 8, 6, 2),
    "cifar10-vgg16bn": (10, 6, 6, 1),
    "cifar10-alexnet": (11, 6, 6, 1),
    "training-time": (12, 2, 5, 0),
    "training-time-cifar10-vgg16": (13, 2, 5, 0),
}

ENTRIES = [
    ("mnist", "LSH", 2, 12.45),
    ("mnist", "UH-BNN", 32, 47.21),
    ("mnist", "BioConvHash", 16, 80.34),
    ("cifar10", "FlyHash", 64, 23.35),
    ("cifar10", "BioHash", 8, 22.61),
    ("smoothness", "BioHash top", 4, 66.3),
    ("smoothness", "LSH bottom", 32, 19.4),
    ("channel-inhibition-mnist", "100", 2, 23.83),
    ("channel-inhibition-cifar10", "25", 8, 24.73),
    ("cifar10-vgg16", "BioHash", 16, 63.47),
    ("cifar10-vgg16", "DeepBit", 16, 19.4),
    ("cifar10-vgg16", "GreedyHash", 4, 23.94),
    ("solhash", "SOLHash", 32, 51.30),
    ("glove-euclidean", "ITQ", 2, 0.59),
    ("glove-cosine", "BioHash", 64, 89.78),
    ("shadows", "GreedyHash", 64, 37.63),
    ("cifar10-vgg16bn", "SH", 16, 41.80),
    ("cifar10-alexnet", "PCAHash", 4, 22.89),
    ("training-time", "BioConvHash", 2, 210.0),
    ("training-time-cifar10-vgg16", "GreedyHash", 32, 5220.0),
]

MISSING = [
    ("mnist", "DH", 8),
    ("mnist", "UH-BNN", 64),
    ("mnist", "BioHash", 64),
    ("cifar10-vgg16", "SAH", 2),
    ("solhash", "SOLHash", 64),
    ("shadows", "BioConvHash", 64),
]


@pytest.mark.parametrize(("name", "method", "hash_length", "want"), ENTRIES)
def test_entry_is_the_printed_number(name, method, hash_length, want):
    assert TABLES[name].value(method, hash_length) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize(("name", "method", "hash_length"), MISSING)
def test_dash_is_none(name, method, hash_length):
    table = TABLES[name]
    assert method in table.rows and hash_length in table.hash_lengths
    assert table.value(method, hash_length) is None


def test_value_is_none_outside_the_table():
    assert TABLES["mnist"].value("NoSuchHash", 16) is None
    assert TABLES["mnist"].value("BioHash", 3) is None
    assert TABLES["smoothness"].value("BioHash top", 64) is None


def test_every_table_is_there_once():
    assert set(TABLES) == set(SHAPES)
    assert all(name == table.name for name, table in TABLES.items())
    assert sorted({table.number for table in TABLES.values()}) == list(range(1, 14))


@pytest.mark.parametrize("name", SHAPES)
def test_shape_is_that_of_the_paper(name):
    table = TABLES[name]
    number, n_rows, n_columns, n_dashes = SHAPES[name]
    assert (table.number, len(table.rows), len(table.hash_lengths)) == (number, n_rows, n_columns)
    assert all(len(row) == n_columns for row in table.rows.values())
    assert sum(value is None for row in table.rows.values() for value in row) == n_dashes
    assert table.hash_lengths == tuple(2**i for i in range(1, n_columns + 1))


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_values_lie_in_the_range_of_their_metric(table):
    top = 100.0 if table.metric.endswith("(%)") else 2 * 3600.0
    values = [value for row in table.rows.values() for value in row if value is not None]
    assert all(isinstance(value, float) and 0.0 < value < top for value in values)


@pytest.mark.parametrize("data", ["mnist", "cifar10"])
def test_chosen_channel_inhibition_is_the_bioconvhash_of_the_main_table(data):
    chosen = TABLES[f"channel-inhibition-{data}"].rows[str(paper.CHANNEL_WINNERS_USED[data])]
    assert chosen == TABLES[data].rows["BioConvHash"][:4]


def test_a_table_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TABLES["mnist"].number = 2


def test_reported_methods_stand_in_some_table():
    printed = {method for table in TABLES.values() for method in table.rows}
    assert printed >= paper.REPORTED_ONLY


def test_greedyhash_is_quoted_only_from_16_on_and_only_without_shadows():
    assert [k for k in (2, 4, 8, 16, 32, 64) if paper.is_quoted("cifar10-vgg16", "GreedyHash", k)] == [16, 32, 64]
    assert not any(paper.is_quoted("shadows", "GreedyHash", k) for k in (2, 16, 64))
    assert paper.is_quoted("mnist", "DH", 16) and not paper.is_quoted("mnist", "BioHash", 16)


def test_used_activity_gives_the_storage_of_the_text():
    for data, bits in paper.STORAGE_BITS_AT_2.items():
        n_units = round(2 / paper.ACTIVITY_USED[data])  # 40 and 400
        assert 2 * (n_units - 1).bit_length() == bits


def latex_cell(cell: str) -> float | None:
    """Return the number of one cell, times in seconds; None for a dash."""
    if cell.strip() == "-":
        return None
    (number,) = re.findall(r"\d+(?:\.\d+)?", cell)
    unit = re.search(r"\\textit\{\s*(\w+)\s*\}", cell)
    return float(number) * (SECONDS[unit[1]] if unit else 1.0)


def latex_rows(tabular: str, hash_lengths: tuple[int, ...]) -> list[tuple[str, tuple[float | None, ...]]]:
    """Return the label and the values of each line that is as wide as the table and is not its head."""
    rows = []
    for line in tabular.replace("[0.5ex]", "").split(r"\\"):
        label, *cells = line.replace(r"\hline", "").split("&")
        if len(cells) == len(hash_lengths):
            values = tuple(latex_cell(cell) for cell in cells)
            if values != hash_lengths:
                rows.append((re.sub(r"\\texttt|\$\^\{\*\}\$|[{}\s]", "", label), values))
    return rows


def our_label(table: Table, method: str) -> str:
    """Return the label that the LaTeX gives to a row, without spaces."""
    if table.name == "smoothness":
        return r"Top10\%" if method.endswith("top") else r"Bottom10\%"
    return method


@pytest.mark.skipif(not LATEX.is_file(), reason=f"the paper's LaTeX source is not at {LATEX}")
def test_every_row_equals_the_latex_source():
    source = re.sub(r"(?<!\\)%.*", "", LATEX.read_text(encoding="utf-8"))
    printed = re.findall(r"\\begin\{table\*?\}.*?\\begin\{tabular\}\{[|c]*\}(.*?)\\end\{tabular\}", source, re.DOTALL)
    assert len(printed) == 13
    for number, tabular in enumerate(printed, start=1):
        tables = [table for table in TABLES.values() if table.number == number]
        ours = [(our_label(t, method), row) for t in tables for method, row in t.rows.items()]
        assert latex_rows(tabular, tables[0].hash_lengths) == ours, f"table {number}"
