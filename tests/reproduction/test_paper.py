import csv
import dataclasses
import re
from pathlib import Path

import pytest

from biohash_mini.reproduction import paper
from biohash_mini.reproduction.paper import TABLES

SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "hrs": 3600.0}


def printed_cells():
    """Return the cells of the paper's tables as printed, read once from its source, in the printed order."""
    with (Path(__file__).parent / "printed_tables.csv").open(newline="", encoding="utf-8") as file:
        for cell in csv.DictReader(file):
            place = int(cell["table"]), cell["experiment"], cell["row"], int(cell["hash_length"])
            yield place, number(cell["value"])


def number(value):
    """Return a printed value as a number, times in seconds; None for a dash, which is an empty string here."""
    if not value:
        return None
    digits, unit = re.fullmatch(r"~?([\d.]+)(?: (\w+))?", value).groups()
    return float(digits) * SECONDS[unit]


def our_cells():
    for name, table in TABLES.items():
        for row, values in table.rows.items():
            for k, value in zip(table.hash_lengths, values, strict=True):
                yield (table.number, name, row, k), value


def test_every_cell_is_the_printed_one_and_none_is_missing():
    assert list(our_cells()) == list(printed_cells())


def test_value_is_the_printed_number_and_none_for_a_dash_or_outside_the_table():
    mnist = TABLES["mnist"]
    assert mnist.value("BioHash", 16) == 54.92
    assert mnist.value("BioHash", 64) is None  # a dash
    assert mnist.value("NoSuchHash", 16) is None
    assert mnist.value("BioHash", 3) is None
    assert TABLES["training-time"].value("BioConvHash", 2) == 210  # "~3.5 m", in seconds


def test_a_table_is_found_by_its_name():
    assert all(name == table.name for name, table in TABLES.items())


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
