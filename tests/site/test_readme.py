"""The example of the README runs as printed."""

import re

import pytest

from book.build import ROOT


@pytest.mark.slow
def test_readme_example_runs_as_printed(capsys):
    text = (ROOT / "README.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    exec(compile(example, "README.md", "exec"), {})
    assert float(capsys.readouterr().out.split()[-1]) > 0.3  # far above chance, 0.1
