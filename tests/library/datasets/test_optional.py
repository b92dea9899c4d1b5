import subprocess
import sys

import pytest

from biohash_mini.datasets import networks, sources

WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(("faiss", "matplotlib", "pandas", "platformdirs", "pooch")))  # none can be imported
from biohash_mini.datasets import data_path, load, nearest
X = load("mnist").vectors(slice(0, 3))
data_path("mnist")
try:
    nearest(X, X, 1)
except ImportError as error:
    print(len(X), error)
"""


def test_data_sets_load_without_the_optional_packages():
    run = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert run.stdout == '3 faiss is not installed: pip install "biohash-mini[faiss]"\n', run.stderr


@pytest.mark.usefixtures("nothing_at_hand")
def test_downloads_say_which_extra_they_need(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    advice = r'^pooch is not installed: pip install "biohash-mini\[data\]"$'
    with pytest.raises(ImportError, match=advice):
        sources.download(sources.SPECS["mnist"], tmp_path)
    with pytest.raises(ImportError, match=advice):
        networks.canonical_weights("alexnet")
