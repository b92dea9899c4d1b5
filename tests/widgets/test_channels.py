"""The channel explorer: its script inhibits as the library does, and its page follows the slider."""

from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from biohash_mini import BioConvHash
from biohash_mini.datasets import load, sample_per_class
from book.build import BUILD

pytest.importorskip("anywidget", reason="the widgets need the extra [widgets]")
from biohash_mini.widgets import ChannelExplorer

LEVELS = (1, 3, 16)


@cache
def parts():
    task = load("mnist").retrieval_task(queries_per_class=2)
    rows = sample_per_class(task.database_labels, 12, 0)
    task = replace(task, database=task.database[rows], database_labels=task.database_labels[rows])
    images = task.database.reshape(-1, *task.image_shape)
    stages = {"kernel_sizes": (4,), "n_filters": 16, "stride": 6, "n_patches": 1000, "filter_epochs": 2}
    conv = BioConvHash(1, activity=1 / 20, max_epochs=2, **stages).fit_features(images)
    hashers = {}
    for level in LEVELS:
        hashers[level] = hasher = copy(conv).set_params(channel_winners=level)
        hasher.fit_layer(hasher.features(images))
    return hashers, task


def explorer(**traits):
    return ChannelExplorer(*parts(), [0, 5, 9], hash_length=3, n_maps=4, **traits)


@pytest.mark.parametrize("level", LEVELS)
def test_the_page_inhibits_as_the_library_does(script, level):
    widget = explorer()
    A = widget.activations()  # (q, positions, F)
    kept = torch.zeros_like(A).scatter(2, A.topk(level, dim=2).indices, 1.0) * A.clamp_min(0)
    want = kept[1, :, widget._busy[2]].numpy() / A[..., widget._busy].max().item()
    n, at = widget.side**2, 1 * 4 + 2  # the third map of the second image
    found = script(
        ChannelExplorer,
        "js.inhibit(...[x.strength, x.rank].map((t) => js.unpack(t).subarray(x.from, x.to)), x.level)",
        strength=widget.maps["strength"],
        rank=widget.maps["rank"],
        **{"from": at * n, "to": (at + 1) * n, "level": level},
    )
    np.testing.assert_allclose(np.array(found) / 255, want, atol=0.003)


def test_answers_and_means_are_those_of_the_hashers():
    widget, (hashers, task) = explorer(), parts()
    images = [A.reshape(-1, *task.image_shape) for A in (task.queries, task.database)]
    codes = [hashers[3].encode(A, 3) for A in images]
    order = np.argsort(codes[0].hamming(codes[1]), axis=1, kind="stable")[:, :10]
    labels = np.array(widget.database_labels)[np.array(widget.answers[1])]
    np.testing.assert_array_equal(labels, task.database_labels[order[[0, 5, 9]]])
    right = (task.database_labels[order] == task.query_labels[:, None]).sum(1).mean()
    assert widget.means[1]["right"] == pytest.approx(right)
    on = [mean["on"] for mean in widget.means]
    assert on == sorted(on)  # the more may speak, the more features are on


def test_filters_of_several_sizes_are_refused():
    hasher = BioConvHash(1, kernel_sizes=(3, 4))
    with pytest.raises(ValueError, match="of one size"):
        ChannelExplorer({1: hasher}, parts()[1], [0])


def test_the_slider_changes_maps_and_answers(show):
    widget = explorer()
    page = show(widget)
    slider, maps = page.get_by_label("channels that may speak"), page.locator(".bh-maps canvas[role=img]")

    def speaking():
        names = maps.evaluate_all("all => all.map((c) => c.ariaLabel)")
        return sum(int(name.split()[4]) for name in names)

    spoken = []
    for stop, level in enumerate(LEVELS):
        slider.fill(str(stop))
        spoken.append(speaking())
        assert slider.get_attribute("aria-valuetext") == f"{level} of 16"
        assert f"with {level} of 16 channels" in page.locator(".bh-mean").inner_text()
    assert spoken[0] < spoken[1] < spoken[2]
    labels = [widget.database_labels[i] for i in widget.answers[2][0]]
    assert page.locator(".bh-strip .bh-same").count() == labels.count(widget.query_labels[0])


def test_another_digit_can_be_chosen(show):
    page, widget = show(explorer()), explorer()
    choices = page.locator(".bh-choices button")
    choices.nth(2).click()
    assert choices.nth(2).get_attribute("aria-pressed") == "true"
    label = page.locator(".bh-digit .bh-stamp").get_attribute("aria-label")
    assert label == f"the query, a {widget.query_labels[2]}"


def test_without_scripts_there_is_a_picture():
    assert "data:image/png" in explorer().picture()


@pytest.mark.book
def test_the_explorer_works_in_its_chapter(open_file):
    file = BUILD / "html" / "notebooks" / "10_convolution.html"
    widget = open_file(file, width=1280).locator(".bh-channels")
    few, mean = widget.locator(".bh-strip .bh-same").count(), widget.locator(".bh-mean").inner_text()
    widget.get_by_label("channels that may speak").press("End")
    assert widget.locator(".bh-strip .bh-same").count() < few
    assert widget.locator(".bh-mean").inner_text() != mean
    assert file.stat().st_size < 1_500_000
