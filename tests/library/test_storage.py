import numpy as np
import pytest

from biohash_mini.storage import digest, load_arrays, save_arrays, write_atomically

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
