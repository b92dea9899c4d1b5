"""Where the widgets are tried: scripts in node, pages in a browser, and both with a kernel in JupyterLab."""

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import nbformat
import pytest

from .browser import until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(tmp_path):
    """Evaluate a JavaScript expression of ``js``, the widget's module, and ``x``, data, in node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the widgets' JavaScript is not tested")

    def run(widget, expression, **x):
        (tmp_path / "widget.mjs").write_text(widget._esm, "utf-8")
        code = (
            f'import * as js from "./widget.mjs"; const x = {json.dumps(x)}; console.log(JSON.stringify({expression}))'
        )
        done = subprocess.run(
            [node, "--input-type=module", "-e", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def show(open_file, tmp_path):
    """Open widgets on a page of their own."""

    def open_page(*widgets, before="", head="<html>", **options):
        file = tmp_path / "page.html"
        body = before + "".join(widget.html() for widget in widgets)
        file.write_text(f'<!doctype html>{head}<meta charset="utf-8"><body>{body}</body></html>', "utf-8")
        return open_file(file, **options)

    return open_page


@pytest.fixture
def lab(tmp_path):
    """Run JupyterLab on a folder of its own and yield the address of a notebook in it, with the token."""
    pytest.importorskip("jupyterlab", reason="JupyterLab needs the extra [book]")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    homes = {name: str(tmp_path / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR")}
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--ServerApp.root_dir={tmp_path}", "--allow-root"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    with (tmp_path / "lab.log").open("w") as log:
        environment = os.environ | homes | {"JUPYTER_TOKEN": "secret", "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def ready():
        assert server.poll() is None, (tmp_path / "lab.log").read_text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api", timeout=5):
                return True
        except OSError:
            return False

    try:
        until(ready, 40)
        yield lambda name: f"http://127.0.0.1:{port}/lab/tree/{name}?token=secret&reset"
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture
def run_in_lab(browser, lab, tmp_path):
    """Run a cell of code in JupyterLab and return its page; afterwards check that the page ran cleanly."""
    context = browser.new_context(viewport={"width": 1300, "height": 1800})
    errors = []

    def run(source):
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        notebook = nbformat.v4.new_notebook(metadata=kernel, cells=[nbformat.v4.new_code_cell(source)])
        nbformat.write(notebook, tmp_path / "widgets.ipynb")
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(lab("widgets.ipynb"))
        page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
        page.get_by_text("| Idle").wait_for(timeout=60_000)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        return page

    yield run
    context.close()
    assert not errors


@pytest.fixture
def seen(tmp_path):
    """Read what the kernel has written to a file, nothing if there is none yet."""
    return lambda name: (tmp_path / name).read_text() if (tmp_path / name).exists() else ""
