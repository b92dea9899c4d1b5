"""A claim fails loudly in the chapter as it was written, and gently in one that a reader has changed."""

import pytest

from biohash_mini.reproduction.claims import claim, written_for

seed = 0


@pytest.fixture(autouse=True)
def forgotten():
    yield
    written_for()


def test_a_claim_that_holds_says_nothing():
    assert claim("two is more than one", 2 > 1) is None


def test_a_claim_that_fails_raises_its_words_where_nothing_was_changed():
    written_for(seed=0)
    with pytest.raises(AssertionError, match=r"^one leads by two$"):
        claim("one leads by two", False)


def test_a_chapter_that_names_no_parameters_is_as_it_was_written():
    with pytest.raises(AssertionError):
        claim("one leads by two", False)


def test_a_claim_that_fails_warns_where_a_parameter_was_changed():
    written_for(seed=3)
    with pytest.warns(UserWarning, match=r"^With seed = 0 this no longer holds: one leads by two$"):
        claim("one leads by two", False)


def test_a_parameter_that_is_not_there_counts_as_unchanged():
    written_for(seed=0, profile="mini")
    with pytest.raises(AssertionError):
        claim("one leads by two", False)


@pytest.mark.parametrize(("name", "value"), [("profile", "nothing"), ("profile", None), ("seed", "zero"), ("seed", -1)])
def test_a_parameter_that_cannot_be_meant_is_refused_even_where_the_claim_holds(monkeypatch, name, value):
    written_for(profile="mini", seed=0)
    monkeypatch.setitem(globals(), name, value)
    with pytest.raises(ValueError, match=name):
        claim("two is more than one", 2 > 1)
