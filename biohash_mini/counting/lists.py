"""The items of each unit, ascending, a range of items at a time: for sparse codes.

A range is small, so its items are numbered in two bytes and the counters of a query stay in the fastest cache. Counters
are read eight bytes at once: added to a word of equal numbers, those that reach a score carry into their highest bit.
"""

import numpy as np
from numba import njit

from .bits import NONE, ONE, bit_of, holds, lowest, popcount
from .threads import share, shares

_RANGE = 1 << 15  # items of a range at most
_LINE = 8  # words that are looked at, and cleared, together


def invert(active: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return where in its range the list of each unit begins, (ranges, m + 1), the items, (n k,), the size of a range.

    ``active`` are the units that are on, shape (n, k). Ranges are equal but for the last, of whole bitmap words.
    """
    n, k = active.shape
    ranges = max(1, -(-n // _RANGE))
    span = max(64, -(-n // (64 * ranges)) * 64)
    ranges = -(-n // span)
    starts, items = np.empty((ranges, m + 1), np.uint32), np.empty(n * k, np.uint16)
    share(lambda a, b: _invert(active, span, a, b, starts, items), shares(ranges, 1))
    return starts, items, span


@njit(nogil=True, cache=True)
def _invert(active, span, first, last, starts, items):
    """Fill the lists of some ranges: the items of each unit are counted, then put in their place."""
    (n, k), m = active.shape, starts.shape[1] - 1
    place = np.empty(m + 1, np.uint32)
    for r in range(first, last):
        rows = active[r * span : min((r + 1) * span, n)]
        block = items[r * span * k : (r * span + len(rows)) * k]
        place[:] = 0
        for i in range(len(rows)):
            for j in range(k):
                place[rows[i, j] + 1] += 1
        for unit in range(m):
            place[unit + 1] += place[unit]
        starts[r] = place
        for i in range(len(rows)):
            for j in range(k):
                unit = rows[i, j]
                block[place[unit]] = i
                place[unit] += 1


@njit(cache=True)
def _count(block, starts, units, counter):
    """Count along the lists of some units and return how many entries they have."""
    entries = 0
    for unit in units:
        first, last = starts[unit], starts[unit + 1]
        entries += last - first
        for j in range(first, last):
            counter[block[j]] += 1
    return entries


@njit(cache=True)
def _reach(words, offset, high):
    """Return how many counters carry into their highest bit when the offset is added."""
    count = NONE
    for w in range(len(words)):
        count += popcount((words[w] + offset) & high)
    return np.int64(count)


@njit(cache=True)
def _least(words, ones, high, top, guess):
    """Return the lowest score among the ``top`` highest of a range, zero if that is all, and how many are higher."""
    over = _reach(words, high - np.uint64(guess + 1) * ones, high)
    if over >= top:
        while over >= top:
            guess += 1
            over = _reach(words, high - np.uint64(guess + 1) * ones, high)
        return guess, over
    while guess:
        here = _reach(words, high - np.uint64(guess) * ones, high)
        if here >= top:
            break
        guess, over = guess - 1, here
    return guess, over


@njit(cache=True)
def _touched(block, starts, units, size, mark, lines):
    """Fill ``lines`` with the numbers of the lines that the lists of some units touch, ascending; return how many."""
    for unit in units:
        for j in range(starts[unit], starts[unit + 1]):
            line = block[j] // size
            mark[line >> 6] |= bit_of(line)
    count = 0
    for w in range(len(mark)):
        x = mark[w]
        mark[w] = NONE
        while x:
            lines[count] = 64 * w + lowest(x)
            x &= x - ONE
            count += 1
    return count


@njit(cache=True)
def _gather(counter, words, ones, high, lines, least, ties, first, found, score, times, held):
    """Gather the items of some lines whose score is ``least``, the first ``ties`` of them, or higher; clear the lines.

    Their numbers and scores go behind those held, and are counted in ``times``; return how many are held then.
    """
    size, floor, magic = len(counter) // len(words), least, NONE  # counters of a word
    bits = 64 // size
    for i in range(size):  # a product with it moves the lowest bits of a word's counters side by side, to its top
        magic |= ONE << np.uint64(64 - bits + i - bits * i)
    down, top, few = np.uint64(bits - 1), np.uint64(64 - bits), (ONE << np.uint64(size)) - ONE
    offset = high - np.uint64(floor) * ones
    for line in lines:
        at, some = line * _LINE, NONE
        for w in range(at, at + _LINE):
            some |= words[w] + offset
        if some & high:
            hits = NONE
            for w in range(_LINE):
                carries = ((words[at + w] + offset) & high) >> down
                hits |= (carries * magic >> top & few) << np.uint64(w * size)
            while hits:
                i = at * size + lowest(hits)
                hits &= hits - ONE
                s = counter[i]
                if s < floor:
                    continue
                found[held], score[held] = first + i, s
                times[s] += 1
                held += 1
                if s == least:
                    ties -= 1
                    if ties == 0:
                        floor = least + 1
                        offset = high - np.uint64(floor) * ones
        for w in range(at, at + _LINE):
            words[w] = NONE
    return held


@njit(cache=True)
def _bound(times, top):
    """Return the score of the last of the ``top`` highest, and how many are higher; ``times`` counts each score."""
    s, over = len(times) - 1, 0
    while over + times[s] < top:
        over += times[s]
        s -= 1
    return s, over


@njit(cache=True)
def _keep(found, score, times, held, top, bound, over):
    """Keep the ``top`` highest of those held, ties by number, in their order."""
    ties, kept = top - over, 0
    for j in range(held):
        if score[j] > bound or (score[j] == bound and ties > 0):
            ties -= score[j] == bound
            found[kept], score[kept] = found[j], score[j]
            kept += 1
    times[:bound] = 0
    times[bound] = top - over


@njit(nogil=True, cache=True)
def nearest(starts, items, span, n, units, counter, distances, ids):
    """Fill distances and ids, each (q, top), with the items of the highest scores, ties by number.

    ``counter`` has one per item of a range, to whole lines, all zero before and after; the highest bit stays free.
    """
    k, top, words = units.shape[1], ids.shape[1], counter.view(np.uint64)
    size = len(counter) // len(words)
    bits = np.uint64(64 // size)
    ones = ~NONE // ((ONE << bits) - ONE)
    high = ones << (bits - ONE)
    all_lines = np.arange(len(words) // _LINE)
    lines, mark = np.empty_like(all_lines), np.zeros(len(all_lines) // 64 + 1, np.uint64)
    found, score = np.empty(2 * top + span, np.uint32), np.empty(2 * top + span, counter.dtype)
    times, place, guess = np.empty(k + 1, np.int64), np.empty(k + 1, np.int64), 0
    for q in range(len(units)):
        held, bound = 0, 0
        times[:] = 0
        for r in range(len(starts)):
            first = r * span
            rows = min(span, n - first)
            block = items[first * k : (first + rows) * k]
            entries = _count(block, starts[r], units[q], counter)
            if held < top:
                guess, over = _least(words, ones, high, top, guess)
                least, ties, some = guess, min(top, rows) - over, all_lines
            else:  # an item that only equals the worst of the best so far comes too late: its number is higher
                least, ties, some = bound + 1, n, all_lines
                if 4 * entries < len(all_lines):
                    some = lines[: _touched(block, starts[r], units[q], size * _LINE, mark, lines)]
            held = _gather(counter, words, ones, high, some, least, ties, first, found, score, times, held)
            if held >= top:
                bound, over = _bound(times, top)
                if held > 2 * top:
                    _keep(found, score, times, held, top, bound, over)
                    held = top
        before = 0
        for s in range(k, -1, -1):
            place[s], before = before, before + times[s]
        for j in range(held):
            s = score[j]
            if place[s] < top:
                distances[q, place[s]], ids[q, place[s]] = 2 * (k - s), found[j]
                place[s] += 1


@njit(nogil=True, cache=True)
def histograms(starts, items, span, n, units, counter, relevant, which, exclude, counts, hits):
    """Fill counts and hits as :func:`.slices.histograms`, for all scores, those of no shared unit by subtraction."""
    k = units.shape[1]
    totals = np.zeros(len(relevant), np.int64)
    for r in range(len(relevant)):
        for word in relevant[r]:
            totals[r] += np.int64(popcount(word))
    touched = np.empty(span + 1, np.uint16)
    for q in range(len(units)):
        good, count, hit = relevant[which[q]], counts[q], hits[q]
        count[k], hit[k] = n - (exclude[q] >= 0), totals[which[q]]
        if exclude[q] >= 0:
            hit[k] -= holds(good, exclude[q])
        for r in range(len(starts)):
            first, met = r * span, 0
            block = items[first * k : (first + span) * k]
            for unit in units[q]:
                for j in range(starts[r, unit], starts[r, unit + 1]):
                    i = block[j]
                    touched[met] = i
                    met += counter[i] == 0
                    counter[i] += 1
            for j in range(met):
                i = touched[j]
                lacking = k - counter[i]
                counter[i] = 0
                if first + i != exclude[q]:
                    is_hit = holds(good, first + i)
                    count[lacking] += 1
                    hit[lacking] += is_hit
                    count[k] -= 1
                    hit[k] -= is_hit
