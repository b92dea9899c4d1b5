"""A bitmap of the items for each unit: for codes whose units are often on, and for dense codes."""

import numpy as np
from numba import njit

from .bits import ALL, NONE, ONE, bit_of, lowest, popcount

_SPAN = 512  # words of a plane that are added up together, so that they stay in the nearest cache


@njit(inline="always")
def _add(a, b, c):
    """Return the digits of a + b + c in every bit: ones, twos."""
    u = a ^ b
    return u ^ c, (a & b) | (u & c)


def words_of(n: int) -> int:
    """Return the words of a bitmap of n items: an odd number of cache lines, lest rows share a corner of it."""
    return 8 * (-(-n // 512) | 1)


def slice_sets(members: np.ndarray) -> np.ndarray:
    """Return the bitmaps of r sets of items, shape (r, words), from bool of shape (r, n)."""
    slices = np.zeros((len(members), words_of(members.shape[1])), dtype=np.uint64)
    slices.view(np.uint8)[:, : -(-members.shape[1] // 8)] = np.packbits(members, axis=1, bitorder="little")
    return slices


@njit(nogil=True, cache=True)
def slice_units(active, first, last, slices):
    """Fill lines ``first`` to ``last``, of 512 items each, of the bitmaps from the units that are on, shape (n, k)."""
    (n, k), tile = active.shape, np.empty((len(slices), 8), np.uint64)
    for line in range(first, last):
        tile[:] = NONE
        for i in range(512 * line, min(512 * line + 512, n)):
            word, bit = np.uint64(i >> 6 & 7), bit_of(i)
            for j in range(np.uint64(k)):
                tile[active[i, j], word] |= bit
        for unit in range(len(slices)):
            for w in range(8):
                slices[unit, 8 * line + w] = tile[unit, w]


@njit(nogil=True, cache=True)
def slice_words(words, slices):
    """Fill the bitmaps from codes of 64-bit words, shape (n, w): 64 rows and columns of bits at a time are turned."""
    (n, width), m, tile = words.shape, len(slices) - 1, np.empty(64, np.uint64)
    for column in range(-(-n // 64)):
        for w in range(width):
            for i in range(64):
                tile[i] = words[64 * column + i, w] if 64 * column + i < n else NONE
            half, mask = 32, np.uint64(0xFFFFFFFF)
            while half:  # swap the off-diagonal quarters, then those of each quarter, and so on
                for i in range(64):
                    if not i & half:
                        swap = ((tile[i] >> np.uint64(half)) ^ tile[i + half]) & mask
                        tile[i + half] ^= swap
                        tile[i] ^= swap << np.uint64(half)
                half >>= 1
                mask ^= mask << np.uint64(half)
            for i in range(64):
                unit = 64 * w + (i ^ 7)  # bytes are packed from their highest bit
                if unit < m:
                    slices[unit, column] = tile[i]


@njit(cache=True)
def _sum(slices, units, flips, planes, carries):
    """Fill the planes with the digits of how many of the units agree: those whose bitmaps, flipped or not, are one."""
    P, W = planes.shape
    for s in range(0, W, _SPAN):
        e = min(s + _SPAN, W)
        planes[:, s:e] = 0
        ones, twos, fours = planes[0, s:e], planes[1, s:e], planes[2, s:e]
        eights, waiting = carries[2], 0  # binary: in which planes a carry waits for a second one
        for g in range(0, len(units), 8):
            a, b, c = slices[units[g], s:e], slices[units[g + 1], s:e], slices[units[g + 2], s:e]
            d, h, i = slices[units[g + 3], s:e], slices[units[g + 4], s:e], slices[units[g + 5], s:e]
            j, k = slices[units[g + 6], s:e], slices[units[g + 7], s:e]
            f = flips[g : g + 8]
            for w in range(e - s):
                one, two_a = _add(ones[w], a[w] ^ f[0], b[w] ^ f[1])
                one, two_b = _add(one, c[w] ^ f[2], d[w] ^ f[3])
                two, four_a = _add(twos[w], two_a, two_b)
                one, two_a = _add(one, h[w] ^ f[4], i[w] ^ f[5])
                ones[w], two_b = _add(one, j[w] ^ f[6], k[w] ^ f[7])
                twos[w], four_b = _add(two, two_a, two_b)
                fours[w], eights[w] = _add(fours[w], four_a, four_b)
            p = 3
            while waiting >> p & 1:  # two carries make one of the next plane
                plane, carry, wait = planes[p, s:e], carries[2, : e - s], carries[p, : e - s]
                for w in range(e - s):
                    plane[w], carry[w] = _add(plane[w], wait[w], carry[w])
                p += 1
            waiting += 8
            carries[p, : e - s] = carries[2, : e - s]
        for p in range(3, P):
            if waiting >> p & 1:
                carry = carries[p, : e - s]
                for above in range(p, P):
                    plane = planes[above, s:e]
                    for w in range(e - s):
                        old = plane[w]
                        plane[w] = old ^ carry[w]
                        carry[w] &= old


@njit(cache=True)
def _all_items(mask, n):
    """Set the bits of n items, and no other."""
    mask[: n >> 6] = ALL
    mask[n >> 6 :] = NONE
    if n & 63:
        mask[n >> 6] = bit_of(n) - ONE


@njit(nogil=True, cache=True)
def nearest(slices, n, units, flips, step, most, distances, ids):
    """Fill distances and ids, each (q, top), with the items of the highest scores, ties by number."""
    W, top = slices.shape[1], ids.shape[1]
    P = 3
    while most >> P:
        P += 1
    planes, carries = np.empty((P, W), np.uint64), np.empty((P + 2, _SPAN), np.uint64)
    over, tied = np.empty(W, np.uint64), np.empty(W, np.uint64)
    found, score, place = np.empty(top, np.int64), np.empty(top, np.int64), np.empty(most + 2, np.int64)
    for q in range(len(units)):
        _sum(slices, units[q], flips[q], planes, carries)
        _all_items(tied, n)
        over[:] = NONE
        need = top  # the score of the last item of the answer, digit by digit: who is over it, who has it
        for p in range(P - 1, -1, -1):
            plane, count = planes[p], np.uint64(0)
            for w in range(W):
                count += popcount(tied[w] & plane[w])
            if count >= need:
                for w in range(W):
                    tied[w] &= plane[w]
            else:
                need -= np.int64(count)
                for w in range(W):
                    over[w] |= tied[w] & plane[w]
                    tied[w] &= ~plane[w]
        f = 0
        place[:] = 0
        for w in range(W):
            x = over[w] | tied[w] if need else over[w]
            while x:
                bit = lowest(x)
                x &= x - ONE
                if tied[w] & bit_of(bit):
                    if need == 0:
                        continue
                    need -= 1
                s = 0
                for p in range(P):
                    s |= np.int64(planes[p, w] >> np.uint64(bit) & ONE) << p
                found[f], score[f] = 64 * w + bit, s
                place[most - s + 1] += 1
                f += 1
        for s in range(most):
            place[s + 1] += place[s]
        for f in range(top):
            s = most - score[f]
            distances[q, place[s]] = step * s
            ids[q, place[s]] = found[f]
            place[s] += 1


@njit(nogil=True, cache=True)
def histograms(slices, n, units, flips, most, at, relevant, which, exclude, counts, hits):
    """Add up how many items, and how many relevant ones, lack s units of a full score: counts and hits, (q, most + 1).

    Scores past the first ``at`` items stay zero. ``relevant`` are bitmaps of items, ``which`` that of each query,
    ``exclude`` the item it must not find, or -1.
    """
    W = slices.shape[1]
    P = 3
    while most >> P:
        P += 1
    planes, carries = np.empty((P, W), np.uint64), np.empty((P + 2, _SPAN), np.uint64)
    masks = np.empty((P + 1, W), np.uint64)  # items whose digits from p upwards are those of the score
    for q in range(len(units)):
        _sum(slices, units[q], flips[q], planes, carries)
        _all_items(masks[P], n)
        if exclude[q] >= 0:
            masks[P, exclude[q] >> 6] &= ~bit_of(exclude[q])
        good = relevant[which[q]]
        score, p, found = most, P - 1, 0
        while score >= 0 and found < at:
            live = ONE
            while p >= 0 and live:
                above, mask, plane, live = masks[p + 1], masks[p], planes[p], NONE
                flip = NONE if score >> p & 1 else ALL
                for w in range(W):
                    mask[w] = above[w] & (plane[w] ^ flip)
                    live |= mask[w]
                p -= 1
            if live:
                mask, count, hit = masks[0], NONE, NONE
                for w in range(W):
                    count += popcount(mask[w])
                    hit += popcount(mask[w] & good[w])
                counts[q, most - score], hits[q, most - score] = count, hit
                found += np.int64(count)
            below = (score >> (p + 1) << (p + 1)) - 1  # nobody has these digits: on to the next that differ
            while below >= 0 and (score ^ below) >> (p + 1):
                p += 1
            score = below
