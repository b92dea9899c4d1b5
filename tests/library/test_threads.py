import pytest

from biohash_mini.counting import threads


@pytest.fixture(params=[1, 2, 5], autouse=True)
def several(request, monkeypatch):
    monkeypatch.setattr(threads, "get_num_threads", lambda: request.param)


def test_all_parts_are_worked_on_once_and_answers_keep_their_order():
    for total in (0, 1, 7, 1000):
        parts = threads.shares(total, 3)
        rows = [i for part in threads.share(lambda a, b: list(range(a, b)), parts) for i in part]
        assert rows == list(range(total))


def test_what_fails_in_a_thread_fails_in_the_caller():
    def work(first, last):
        if first <= 500 < last:
            raise IndexError("row 500")

    with pytest.raises(IndexError, match="row 500"):
        threads.share(work, threads.shares(1000, 3))
