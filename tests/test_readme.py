"""The example of the README runs as printed."""

import re
from pathlib import Path

import pytest


@pytest.mark.slow
def test_readme_example_runs_as_printed(capsys):
    text = (Path(__file__).parent.parent / "README.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    exec(compile(example, "README.md", "exec"), {})
    assert float(capsys.readouterr().out.split()[-1]) > 0.3  # far above chance, 0.1
