"""Workers end with the process that started them; the locks that they hold say whether they have."""

import os
import signal
import subprocess
import sys

import pytest

from biohash_mini.reproduction.workers import pool
from tests.helpers import all_ended, wait_for

SCRIPT = """
import fcntl, os, signal, sys, time
from pathlib import Path
from biohash_mini.reproduction.workers import pool

def work(folder, seconds):
    mine = Path(folder, f"{time.monotonic_ns()}").open("w")
    fcntl.flock(mine, fcntl.LOCK_EX)
    time.sleep(seconds)
    return os.getpid()

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests themselves ignore it, behind nohup
    with pool(2, int) as executor:
        tasks = [executor.submit(work, sys.argv[1], float(sys.argv[2])) for _ in range(6)]
        print(len({task.result() for task in tasks}))
"""


def start(folder, seconds):
    """Start the script above, whose workers sleep so long."""
    (folder / "held").mkdir()
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(folder / "script.py"), str(folder / "held"), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_end_at_once_with_the_process_that_started_them(tmp_path, end):
    with start(tmp_path, 300) as process:
        held = wait_for(lambda: len(found := [*(tmp_path / "held").iterdir()]) == 2 and found)
        process.send_signal(end)
        assert process.wait(30) != 0
    wait_for(lambda: all_ended(held))
    assert len([*(tmp_path / "held").iterdir()]) == 2  # what was queued was not begun


def test_workers_that_nobody_disturbs_finish_what_was_queued(tmp_path):
    with start(tmp_path, 0.2) as process:
        assert process.communicate(timeout=120)[0] == "2\n"
    assert len([*(tmp_path / "held").iterdir()]) == 6


def test_a_worker_that_was_ended_from_outside_is_told_of_in_words():
    with pytest.raises(RuntimeError, match="ended from outside"), pool(1, int) as executor:
        executor.submit(os.abort).result()
