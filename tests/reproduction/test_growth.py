"""What was measured is carried to other sizes by the work it is made of."""

import pytest

from biohash_mini.reproduction import growth
from biohash_mini.reproduction.growth import Cost, Machine, Size


def test_costs_are_scaled_by_the_work_they_are_made_of():
    measured, wanted = Size(1000, 100, 2000, 8), Size(10_000, 200, 4000, 16)
    items = growth.COPIES * 1000  # that were searched
    there = growth.scaled(Cost(1.0, 2.0, 3.0, 32.0), measured, wanted)
    assert there.training == 40 and there.encoding == 80  # ten times the rows, twice the inputs and the units
    assert there.search == pytest.approx(3 * (10_000 / items) * 4 / 2)
    assert there.memory == 64


def test_a_machine_ends_where_its_resources_do():
    measured = Size(1000, 100, 2000, 8)
    cost = Cost(training=1.0, encoding=1.0, search=0.001, memory=32.0)
    found = growth.limits(cost, measured, measured, Machine(memory=1e6, night=10.0, patience=0.1))
    assert found["vectors in memory"] == 1e6 / 400
    assert found["index in memory"] == 1e6 / 32
    assert found["codes in memory"] == 1e6 / 16  # eight units of two bytes
    assert found["a pass of training overnight"] == pytest.approx(10_000)
    assert found["a query while you wait"] == pytest.approx(100 * growth.COPIES * 1000)
    assert found.is_monotonic_increasing


def test_the_bill_counts_bytes_products_and_entries():
    bill = {name: number for name, number, _ in growth.bill(Size(10**6, 100, 1000, 10), batch_size=500)}
    assert bill["vectors, float32"] == 4 * 10**8 and bill["codes"] == 2 * 10**7
    assert bill["products of a pass of training"] == 2 * 10**11
    assert bill["entries that a query reads"] == 10**5
    assert bill["sent by a process in a pass of training"] == 4 * 500 * 102 * 2000


def test_costs_are_measured_and_their_slopes_are_finite():
    small = Size(200, 16, 600, 4)
    cost = growth.measure(small)
    assert min(cost) > 0 and cost.memory == pytest.approx(8, rel=0.1)  # four numbers of two bytes
    slopes = growth.slopes(cost, small)
    assert slopes.shape == (4, 4) and slopes.notna().all(axis=None)
    assert slopes.loc["memory", "k"] == pytest.approx(1, abs=0.1)


def test_waiting_is_measured_too():
    assert min(growth.clocked([200, 16, 600, 4])) > 0
