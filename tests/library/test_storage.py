import os
import resource
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from biohash_mini.storage import check_writable, digest, load_arrays, save_arrays, write_atomically

ARRAYS = {"a": np.arange(6, dtype=np.uint16).reshape(2, 3), "b": np.zeros((0, 4), np.float32)}


def test_arrays_and_description_survive_the_disk(tmp_path):
    save_arrays(tmp_path / "x.safetensors", ARRAYS, k=2, names=["p", "q"])
    arrays, about = load_arrays(tmp_path / "x.safetensors")
    assert about == {"k": 2, "names": ["p", "q"]}
    assert all(np.array_equal(arrays[name], a) and arrays[name].dtype == a.dtype for name, a in ARRAYS.items())


def test_the_digest_sees_names_types_shapes_and_values():
    a = ARRAYS["a"]
    variants = [{"a": a}, {"b": a}, {"a": a.astype(np.uint32)}, {"a": a.reshape(3, 2)}, {"a": a + 1}, ARRAYS]
    assert len({digest(v) for v in variants}) == len(variants)
    assert digest({"a": a.T.copy().T}) == digest({"a": a})


@pytest.mark.parametrize("where", [0.02, 0.2, 0.5, 0.9])
def test_a_truncated_file_is_refused(where, tmp_path):
    path = tmp_path / "x.safetensors"
    save_arrays(path, ARRAYS, k=2)
    path.write_bytes(path.read_bytes()[: int(where * path.stat().st_size)])
    with pytest.raises(ValueError, match=r"truncated|checksum"):
        load_arrays(path)


def test_a_changed_byte_is_noticed_in_data_and_description(tmp_path):
    path = tmp_path / "x.safetensors"
    save_arrays(path, ARRAYS, k=2)
    whole = path.read_bytes()
    for position in (len(whole) - 1, whole.index(b'k\\": 2') + 5):
        path.write_bytes(whole[:position] + b"7" + whole[position + 1 :])
        with pytest.raises(ValueError, match="checksum"):
            load_arrays(path)


def test_a_missing_file_is_called_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        load_arrays(tmp_path / "nothing")


def test_an_interrupted_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")

    def fail(part):
        part.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, fail)
    assert [p.name for p in tmp_path.iterdir()] == ["x"] and path.read_text() == "old"


def _limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))


def test_a_disk_that_is_full_is_an_os_error_in_one_line_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.safetensors"
    save_arrays(path, ARRAYS)
    program = f"""
import numpy as np
from biohash_mini.storage import save_arrays
try:
    save_arrays({str(path)!r}, {{"a": np.zeros(1 << 20)}})
except OSError as error:
    print("OSError", str(error).count("\\n"), error)
"""
    run = subprocess.run([sys.executable, "-c", program], preexec_fn=_limit_file_size, capture_output=True, text=True)
    assert run.stdout.startswith(f"OSError 0 {path} cannot be written"), run.stderr
    assert load_arrays(path)[0].keys() == ARRAYS.keys() and [p.name for p in tmp_path.iterdir()] == [path.name]


def test_threads_that_save_to_one_path_leave_one_whole_file(tmp_path):
    path, failures = tmp_path / "x.safetensors", []

    def save(value):
        try:
            for _ in range(4):
                save_arrays(path, {"a": np.full(2000, value)})
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=save, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(np.unique(load_arrays(path)[0]["a"])) == 1
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_what_a_killed_process_left_is_removed_by_the_next_write_and_what_a_living_one_writes_is_not(tmp_path):
    path = tmp_path / "x"
    program = f"""
import os, signal
from biohash_mini.storage import write_atomically
write_atomically({str(path)!r}, lambda part: (part.write_text("half"), os.kill(os.getpid(), signal.SIGKILL)))
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1

    def write(part):
        part.write_text("outer")
        write_atomically(path, lambda inner: inner.write_text("inner"))  # must leave the part of the outer call alone
        assert part.exists()

    write_atomically(path, write)
    assert [p.name for p in tmp_path.iterdir()] == ["x"] and path.read_text() == "outer"


def test_bytes_are_on_disk_before_the_rename(tmp_path, monkeypatch):
    calls = []
    plain_sync, plain_replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (calls.append("fsync"), plain_sync(handle)))
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append("replace"), plain_replace(a, b)))
    save_arrays(tmp_path / "x", ARRAYS)
    assert calls == ["fsync", "replace", "fsync"]  # the file, then the folder that names it


def test_a_file_has_the_rights_that_the_umask_leaves(tmp_path):
    save_arrays(tmp_path / "x", ARRAYS)
    (tmp_path / "plain").touch()
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_numbers_that_numpy_has_not_are_refused(tmp_path):
    save_file({"a": torch.zeros(3, dtype=torch.bfloat16)}, tmp_path / "x")
    with pytest.raises(ValueError, match=r"x (holds a type of numbers that numpy has not|does not match its checksum)"):
        load_arrays(tmp_path / "x")


def test_numpy_scalars_can_be_stored_and_other_objects_not(tmp_path):
    save_arrays(tmp_path / "x", ARRAYS, k=np.int64(2), rate=np.float32(0.5), sizes=np.arange(3))
    assert load_arrays(tmp_path / "x")[1] == {"k": 2, "rate": 0.5, "sizes": [0, 1, 2]}
    with pytest.raises(TypeError, match="object cannot be stored"):
        save_arrays(tmp_path / "x", ARRAYS, k=object())


def test_places_that_cannot_be_written_are_told_beforehand(tmp_path):
    (tmp_path / "file").write_text("kept")
    check_writable(tmp_path / "file")
    check_writable(tmp_path / "new" / "file")
    assert (tmp_path / "file").read_text() == "kept" and not (tmp_path / "new" / "file").exists()
    os.mkfifo(tmp_path / "pipe")
    for bad in (tmp_path, tmp_path / "file" / "below", tmp_path / "pipe"):
        with pytest.raises(OSError):
            check_writable(bad)


def test_a_pipe_or_a_device_is_not_replaced_by_a_file_and_a_link_leads_to_one(tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe is a device or a pipe"):
        save_arrays(pipe, {"a": np.zeros(2)})
    assert pipe.is_fifo()
    (link := tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    save_arrays(link, {"a": np.zeros(2)})
    assert link.is_symlink() and load_arrays(tmp_path / "elsewhere")[0]["a"].tolist() == [0, 0]
