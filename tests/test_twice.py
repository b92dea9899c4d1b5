"""Two executions of a chapter are told apart by what they print, but for what follows from a clock."""

import nbformat
import pytest

from biohash_mini.reproduction import results
from tools import twice
from tools.twice import differences, timed


def executed(path, *cells):
    """Write a notebook of sources and what each has printed."""
    page = nbformat.v4.new_notebook()
    for number, (source, text) in enumerate(cells):
        output = nbformat.v4.new_output("stream", name="stdout", text=text)
        page.cells.append(nbformat.v4.new_code_cell(source, id=f"c{number}", outputs=[output]))
    nbformat.write(page, path)
    return path


def test_another_number_is_a_difference_and_another_time_is_none(tmp_path):
    clock = "import time\nstart = time.perf_counter()\nprint(start)"
    one = executed(tmp_path / "1.ipynb", ("print(x)", "0.5\n"), (clock, "1.25\n"))
    two = executed(tmp_path / "2.ipynb", ("print(x)", "0.5\n"), (clock, "7.5\n"))
    other = executed(tmp_path / "3.ipynb", ("print(x)", "0.6\n"), (clock, "7.5\n"))
    assert differences(one, two) == (1, [])
    assert differences(one, other) == (1, ["cell 1, output 1: '0.5\\n' and '0.6\\n'"])


def test_what_is_printed_in_pieces_is_what_is_printed_at_once(tmp_path):
    one = executed(tmp_path / "1.ipynb", ("print(x)", "a\nb\n"))
    page = nbformat.read(one, as_version=4)
    page.cells[0].outputs = [nbformat.v4.new_output("stream", name="stdout", text=text) for text in ("a\n", "b\n")]
    nbformat.write(page, tmp_path / "2.ipynb")
    assert differences(one, tmp_path / "2.ipynb") == (1, [])


def test_what_a_function_puts_a_time_into_is_timed():
    cells = ["cost = {}", "def learn(x):\n    cost[x] = time.process_time()", "print(x)", "print(cost)"]
    assert timed(cells) == [False, True, False, True]


def test_what_the_package_measures_by_a_clock_is_known():
    cells = ["base = growth.BASE\ncost = growth.measure(base)", "measure(base)", "base", "growth.scaled(cost, base)"]
    assert timed(cells) == [True, False, False, True]


@pytest.mark.parametrize(
    "source",
    ["seconds(f)", "%timeit f()\nx = timeit(f)", "took = seconds(f)", "table.loc[3] = seconds(f)"],
)
def test_what_follows_from_a_clock_is_known_by_the_names_it_passes_through(source):
    start = ["import time\nx = 3\ntable = {}", "def seconds(f):\n    return time.process_time()", "print(x)"]
    ends = ["print(took)" if "took" in source else "print(table)" if "table" in source else "seconds(g)", "print(x)"]
    assert timed([*start, source, *ends]) == [False, True, False, True, True, "x =" in source]


def test_the_outputs_of_a_chapter_are_counted_and_recorded(tmp_path, monkeypatch, capsys):
    runs = [executed(tmp_path / f"{i}.ipynb", ("print(x)", "1\n"), ("print(y)", f"{i}\n")) for i in range(2)]
    monkeypatch.setattr(twice.build, "notebooks", lambda: [tmp_path / "chapter.ipynb"])
    monkeypatch.setattr(twice.build, "execute", lambda chapter: runs.pop())
    monkeypatch.setenv("BIOHASH_RESULTS", str(tmp_path))
    assert twice.main([]) == 1 and "2 outputs compared, 1 differ" in capsys.readouterr().out
    (line,) = results.read("stress")
    assert (line["name"], line["part"], line["tried"], line["held"]) == ("chapter", "chapters", 2, 1)
    assert "cell 2" in line["problems"][0]
