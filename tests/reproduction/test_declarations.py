import pytest
import torch

from biohash_mini import LSH, METHODS, Hasher
from biohash_mini.cli import build_parser
from biohash_mini.reproduction import report, results
from biohash_mini.reproduction.declarations import EXPERIMENTS
from biohash_mini.reproduction.experiment import Row
from biohash_mini.reproduction.plots import color, compare, row_colors
from biohash_mini.reproduction.runner import run
from biohash_mini.reproduction.settings import RIVALS, make_hasher
from biohash_mini.widgets import ResultsExplorer
from book import pages


class Mine(LSH):
    """Hyperplanes through the first coordinates."""

    def _fit(self, X, rng):
        self.weights_ = torch.eye(self.hash_length, X.shape[1])


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(METHODS, "Mine", Mine)


def test_a_registered_method_is_seen_everywhere(registered, tmp_path, capsys):
    for name in ("mnist", "cifar10", "solhash", "shadows", "glove-cosine", "cifar10-vgg16"):
        assert "Mine" in {trial.row.label for trial in EXPERIMENTS[name].trials()}
    assert run("mnist", methods=["Mine"], hash_lengths=[4], seeds=[0], where=tmp_path) == 1
    found = [c for c in report.cells(["mnist"], profile="mini", where=tmp_path) if c["method"] == "Mine"]
    assert [c["seeds"] for c in found if c["hash_length"] == 4] == [1]
    assert "Mine" in report.wide("mnist", where=tmp_path).index
    assert row_colors("mnist", ["LSH", "Mine"])["Mine"] == color("Mine") != color("LSH")
    compare(found)
    (shown,) = ResultsExplorer(found).experiments
    assert shown["methods"] == [{"name": "Mine", "color": color("Mine")}]
    assert ".. autoclass:: Mine" in pages.methods_page()
    assert build_parser().parse_args(["hash", "x.npy", "--method", "Mine", "--model", "m", "--codes", "c"])


def test_rivals_stand_in_the_tables_that_have_them_and_in_no_other():
    def tables(label):
        return {e.name for e in EXPERIMENTS.values() if label in {row.label for row in e.all_rows()}}

    assert tables("DH") == tables("UH-BNN") == {"mnist"} and not tables("DenseFly") | tables("WTAHash")
    assert tables("SOLHash") == {"solhash", "training-time"}
    times = {"training-time", "training-time-cifar10-vgg16", "training-time-cifar10-alexnet"}
    assert tables("GreedyHash") == {"cifar10-vgg16", "cifar10-vgg16-pooled", "shadows", *times}
    assert tables("GreedyHash on pixels") == {"shadows"} and RIVALS <= set(METHODS)


def test_long_cells_have_one_seed_and_others_all():
    def seeds(name, label, k):
        return [t.seed for t in EXPERIMENTS[name].trials() if (t.row.label, t.hash_length) == (label, k)]

    assert seeds("learner-cifar10", "rows, not trained", 64) == [0] and seeds("cifar10", "BioHash", 64) == [0, 1, 2]
    assert seeds("mnist", "LSH", 2) == [0, 1, 2, 3, 4]
    assert seeds("mnist", "BioConvHash", 64) == [0] and not seeds("cifar10", "BioConvHash", 64)
    assert not seeds("solhash", "BioConvHash", 2)


def test_hashers_of_the_tables_have_the_papers_activity():
    assert make_hasher("BioHash", 4, 1, "cifar10").n_units == 800
    assert make_hasher("SH", 4, 1, "mnist").get_params()["seed"] == 1
    assert EXPERIMENTS["sparsity-mnist"].row("a=2.5%").params["activity"] == 0.025


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_row_can_be_made_and_has_a_name_of_its_own(name):
    rows = EXPERIMENTS[name].all_rows()
    assert len({row.label for row in rows}) == len(rows)
    for row in rows:
        hasher = METHODS[row.method](2, **row.params)
        assert isinstance(hasher, Hasher) and isinstance(row, Row)
        hasher._check_params()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_recorded_line_has_its_place_in_the_table(name):
    experiment = EXPERIMENTS[name]
    cells = {(trial.row.label, trial.hash_length) for trial in experiment.trials()}
    archive = {(row.label, k) for row in experiment.all_rows() if row.archived for k in experiment.hash_lengths}
    assert {(r["method"], r["hash_length"]) for r in results.read(name)} <= cells | archive


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_record_was_made_with_the_parameters_that_its_row_declares(name):
    rows = {row.label: row for row in EXPERIMENTS[name].all_rows()}
    for r in results.read(name):
        for parameter in ("reduction", "start"):
            declared, used = rows[r["method"]].params.get(parameter), r["params"].get(parameter)
            assert None in (declared, used) or declared == used, (r["method"], r["hash_length"], parameter)


def test_an_archived_row_is_shown_and_never_measured(tmp_path):
    key = {"profile": "full", "method": "BioHash, max step", "seed": 0}
    results.append("mnist", key | {"hash_length": 4, "value": 48.0}, tmp_path)
    assert EXPERIMENTS["mnist"].row("BioHash, max step").archived
    assert "BioHash, max step" not in {trial.row.label for trial in EXPERIMENTS["mnist"].trials()}
    shown = [c for c in report.cells(["mnist"], where=tmp_path) if c["method"] == "BioHash, max step"]
    assert [(c["hash_length"], c["ours"]) for c in shown] == [(4, 48.0)]
