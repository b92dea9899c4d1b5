"""Words of 64 bits inside compiled loops."""

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

ONE, NONE, ALL = np.uint64(1), np.uint64(0), ~np.uint64(0)


@intrinsic
def popcount(typing_context, x):
    """Return the number of ones of a 64-bit word, as one instruction where the processor has it."""
    return types.uint64(types.uint64), lambda context, builder, signature, args: builder.ctpop(args[0])


@njit(inline="always")
def lowest(x):
    """Return the place of the lowest one of a word that is not zero."""
    return np.int64(popcount(~x & (x - ONE)))


@njit(inline="always")
def bit_of(i):
    """Return the word in which item i has its bit."""
    return ONE << np.uint64(i & 63)


@njit(inline="always")
def holds(bitmap, i):
    """Return whether item i is in a bitmap, as 0 or 1."""
    return np.int64(bitmap[i >> 6] >> np.uint64(i & 63) & ONE)
