r"""The toy model on the circle (the paper, sec. 2.2 and its supplement on the distribution in the hash space).

Data are points of the unit circle, units are angles, and a datum belongs to the unit nearest to it (p = 2, Δ = 0,
units of norm one). Letters: ``phi`` an angle, ``sigma`` the decay length of the density

.. math:: \rho(\varphi) = \alpha\, e^{-|\varphi|/\sigma},\qquad
          \alpha = \bigl[2\sigma\,(1-e^{-\pi/\sigma})\bigr]^{-1},\qquad -\pi\le\varphi<\pi,

where ``sigma = None`` or infinity stands for the uniform density :math:`1/2\pi`. Everything is float64 and exact up to
rounding: sectors of the circle are integrated in closed form.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import xlogy

from .inputs import count, real_numbers, require

MOST = 10_000  # units whose optimum is searched for
TURN = 2 * math.pi
_NARROWEST = 1e-150  # a width whose inverse can be squared
Floats = np.ndarray  # of float64
Angles = float | Sequence[float] | np.ndarray


def _rate(sigma: float | None) -> float:
    """Return 1 / sigma, which is 0 for the uniform density."""
    if sigma is None:
        return 0.0
    positive = isinstance(sigma, float | int | np.floating | np.integer) and sigma >= _NARROWEST
    require(positive, f"sigma must be positive, or None for the uniform density, got {sigma!r}")
    return 1 / sigma


def _peak(sigma: float | None) -> float:
    r"""Return :math:`\alpha`, the density at zero angle."""
    rate = _rate(sigma)
    return -rate / (2 * math.expm1(-math.pi * rate)) if rate else 1 / TURN


def _wrap(t: Angles) -> tuple[Floats, Floats]:
    """Return the angle in [-π, π) and the number of whole turns of each t."""
    t = real_numbers("angles", t)
    turns = np.floor((t + math.pi) / TURN)
    return t - TURN * turns, turns


def density(phi: Angles, sigma: float | None = None) -> Floats:
    r"""Return the density of the data at each angle, :math:`\rho(\varphi)=\alpha e^{-|\varphi|/\sigma}`, eq. (9)."""
    return _peak(sigma) * np.exp(-np.abs(_wrap(phi)[0]) * _rate(sigma))


def quantile(q: Angles, sigma: float | None = None) -> Floats:
    r"""Return the angle below which, from :math:`-\pi`, a fraction q of the data lies; of random q it draws data."""
    q, rate = np.asarray(q, dtype=float), _rate(sigma)
    if not rate:
        return TURN * (q - 0.5)
    inner = 2 * np.abs(q - 0.5)  # the fraction of the data nearer to zero than the answer
    return np.copysign(np.log1p(inner * math.expm1(-math.pi * rate)) / -rate, q - 0.5)


def _integrals(t: Angles, sigma: float | None) -> tuple[Floats, Floats, Floats]:
    r"""Return :math:`\int_0^t\rho`, :math:`\int_0^t\rho\cos` and :math:`\int_0^t\rho\sin`, for t beyond a turn too."""
    rate = _rate(sigma)
    if not rate:
        t = np.asarray(t, dtype=float)
        return t / TURN, np.sin(t) / TURN, (1 - np.cos(t)) / TURN
    w, turns = _wrap(t)
    u, side = np.abs(w), np.sign(w)
    fade = np.exp(-u * rate)
    scale = _peak(sigma) / (1 + rate**2)
    half_turn = scale * rate * (1 + math.exp(-math.pi * rate))
    mass = turns - side * _peak(sigma) / rate * np.expm1(-u * rate)
    cosine = side * scale * (rate + fade * (np.sin(u) - rate * np.cos(u))) + 2 * turns * half_turn
    sine = scale * (1 - fade * (np.cos(u) + rate * np.sin(u)))
    return mass, cosine, sine


def _sectors(t: Floats, sigma: float | None) -> Floats:
    """Return the three integrals over the sectors that end at the ascending borders t, shape (3, ..., m)."""
    ends = np.concatenate([t[..., -1:] - TURN, t], axis=-1)
    return np.diff(_integrals(ends, sigma), axis=-1)


def _ascending(angles: Angles) -> tuple[Floats, np.ndarray]:
    """Return the angles in [-π, π) in ascending order and where each came from."""
    wrapped = _wrap(angles)[0]
    require(wrapped.ndim > 0 and wrapped.shape[-1] > 0, f"angles must have shape (..., m >= 1), got {wrapped.shape}")
    order = np.argsort(wrapped, axis=-1, kind="stable")
    return np.take_along_axis(wrapped, order, axis=-1), order


def _borders(phi: Floats, k: int = 1) -> Floats:
    """Return where the k nearest of the ascending units i, ..., i + k - 1 give way to i + 1, ..., i + k."""
    m = phi.shape[-1]
    return (phi + np.concatenate([phi, phi + TURN], axis=-1)[..., k : k + m]) / 2


def energy(angles: Angles, sigma: float | None = None) -> Floats:
    r"""Return the energy of units at these angles, shape (...) for angles (..., m), eq. (8).

    .. math:: E = -\int_{-\pi}^{\pi}\!\rho(\varphi)\max_\mu\cos(\varphi-\varphi_\mu)\,d\varphi
              = -\sum_\mu\int_{\text{sector }\mu}\!\rho(\varphi)\cos(\varphi-\varphi_\mu)\,d\varphi

    The sectors end half-way between neighbouring units, and each integral is elementary.
    """
    phi, _ = _ascending(angles)
    _, cosine, sine = _sectors(_borders(phi), sigma)
    return -(np.cos(phi) * cosine + np.sin(phi) * sine).sum(-1)


def energy_gradient(angles: Angles, sigma: float | None = None) -> Floats:
    r"""Return the derivatives of the energy, in the order of the angles, shape (..., m).

    .. math:: \frac{\partial E}{\partial\varphi_\mu}
              = \int_{\text{sector }\mu}\!\rho(\varphi)\sin(\varphi_\mu-\varphi)\,d\varphi

    The borders move too, but neighbours are equally near there, so that does not change the energy.
    """
    phi, order = _ascending(angles)
    _, cosine, sine = _sectors(_borders(phi), sigma)
    gradient = np.empty_like(phi)
    np.put_along_axis(gradient, order, np.sin(phi) * cosine - np.cos(phi) * sine, axis=-1)
    return gradient


def _hessian(phi: Floats, sigma: float | None) -> Floats:
    """Return the second derivatives of the energy of ascending units, shape (m, m): only neighbours are coupled."""
    m, borders = len(phi), _borders(phi)
    _, cosine, sine = _sectors(borders, sigma)
    H = np.diag(np.cos(phi) * cosine + np.sin(phi) * sine)
    for i, c in enumerate(density(borders, sigma) * np.sin(borders - phi) / 2):
        H[np.ix_([i, (i + 1) % m], [i, (i + 1) % m])] -= c
    return H


def outer_angle(sigma: float | None = None) -> float:
    r"""Return ψ, where three units stand at 0 and ±ψ: the one root in (0, π) of eq. (16).

    .. math:: (\sigma\cos\psi-\sin\psi)\,e^{-\pi/\sigma}
              + \bigl(\sigma\cos\tfrac\psi2-\sin\tfrac\psi2\bigr)\,e^{-\psi/2\sigma} = 0
    """
    rate = _rate(sigma)

    def balance(psi: float) -> float:  # the equation divided by sigma exp(-psi / 2 sigma)
        far = (math.cos(psi) - rate * math.sin(psi)) * math.exp((psi / 2 - math.pi) * rate)
        return far + math.cos(psi / 2) - rate * math.sin(psi / 2)

    return brentq(balance, 0, math.pi, xtol=1e-15)


def optimal_angles(n_units: int, sigma: float | None = None) -> Floats:
    r"""Return the ascending angles of lowest energy, shape (m,).

    Exact for two units (:math:`\pm\arctan\sigma`, eq. 11), for three (0 and ±ψ) and for the uniform density (equal
    gaps, turned so that zero is a mirror axis, though any rotation is as good); otherwise by Newton's method.

    Notes
    -----
    The minimum mirrors itself about zero, and the search does too. It has to: for even m the energy is flat to second
    order when the border at zero moves, and Newton's method in all m angles would stall there.
    """
    n_units = count("n_units", n_units, 1, MOST)
    if sigma is None or not _rate(sigma) or n_units == 1:
        return TURN * ((np.arange(n_units) + 0.5) / n_units - 0.5)
    if n_units <= 3:
        outer = math.atan(sigma) if n_units == 2 else outer_angle(sigma)
        return np.linspace(-outer, outer, n_units)
    return _mirrored_minimum(n_units, sigma)


def _mirrored_minimum(m: int, sigma: float) -> Floats:
    """Return a stationary point that mirrors itself: from the many-unit limit by centring, then by Newton's method."""
    phi, h = quantile((np.arange(m) + 0.5) / m, 3 * sigma), m // 2
    for _ in range(20):
        _, cosine, sine = _sectors(_borders(phi), sigma)
        phi = np.arctan2(sine, cosine)  # the mean direction of each sector
    for _ in range(50):
        H = _hessian(phi, sigma)
        half = H[-h:, -h:] - H[-h:, :h][:, ::-1]  # the units at -x move against those at x
        step = np.linalg.solve(half, energy_gradient(phi, sigma)[-h:])
        x = phi[-h:] - step
        phi = np.concatenate([-x[::-1], np.zeros(m % 2), x])
        if np.abs(step).max() < 1e-13:
            break
    if np.abs(step).max() > 1e-9 or (np.diff(phi) <= 0).any():
        raise RuntimeError(f"no minimum found for {m} units and sigma = {sigma}")
    return phi


class CodeDistribution(NamedTuple):
    """All codes in ascending order: units on, shape (c, k); the arc of data with that code; its mass, (c,) each.

    ``start`` and ``stop`` lie less than a turn apart, but may lie beyond ±π.
    """

    active: np.ndarray
    start: Floats
    stop: Floats
    probability: Floats


def code_distribution(angles: Angles, sigma: float | None = None, hash_length: int = 1) -> CodeDistribution:
    """Return every code of k nearest units with its arc and its probability; there are m of them if k < m.

    The k units are neighbours, and i, ..., i + k - 1 change to i + 1, ..., i + k half-way between i and i + k.
    """
    phi, order = _ascending(angles)
    m = len(phi)
    _check_hash_length(hash_length, m)
    if hash_length == m:
        return CodeDistribution(order[None], np.array([-math.pi]), np.array([math.pi]), np.ones(1))
    stop = _borders(phi, hash_length)
    start = np.concatenate([stop[-1:] - TURN, stop[:-1]])
    active = order[(np.arange(m)[:, None] + np.arange(hash_length)) % m]
    return CodeDistribution(active, start, stop, np.maximum(_sectors(stop, sigma)[0], 0))


def kl_divergence(
    sigma: float | None, hash_length: int = 1, n_units: int = 3, *, angles: Angles | None = None, reverse: bool = False
) -> float:
    r"""Return the divergence between the data and their codes, in nats; eqs. (17) and (18) for m = 3.

    .. math:: D(\rho\,\|\,P_k) = \int\rho\ln\frac{\rho}{P_k}
              = \ln\alpha - \frac{\langle|\varphi|\rangle}{\sigma} - \sum_c p_c\ln\frac{p_c}{w_c}

    Here :math:`P_k` spreads the probability :math:`p_c` of each code evenly over its arc of width :math:`w_c`. The m
    units stand at their optimum, or at ``angles``; ``reverse`` asks for :math:`D(P_k\,\|\,\rho)`.
    """
    units = optimal_angles(n_units, sigma) if angles is None else angles
    _, start, stop, p = code_distribution(units, sigma, hash_length)
    start, stop, p = (a[stop > start] for a in (start, stop, p))
    height = p / (stop - start)
    codes, log_peak, t = xlogy(p, height).sum(), math.log(_peak(sigma)), math.pi * _rate(sigma)
    if reverse:
        return float(codes - log_peak + _rate(sigma) * (height * (_absolute(stop) - _absolute(start))).sum())
    return float(log_peak - codes - (1 + t * math.exp(-t) / math.expm1(-t) if t else 0))  # <|phi|> / sigma


def _absolute(t: Floats) -> Floats:
    r"""Return :math:`\int_0^t|\varphi|`, the angle taken in [-π, π)."""
    w, turns = _wrap(t)
    return w * np.abs(w) / 2 + math.pi**2 * turns


def _check_hash_length(k: int, m: int) -> None:
    fits = count("hash_length", k, least=0) in range(1, m + 1)
    require(fits, f"hash_length must lie between 1 and the number of units {m}, got {k}")


def _cells_apart(theta: Angles, m: int, k: int) -> Floats:
    """Return the angle of each pair in units of the gap between neighbouring units."""
    _check_hash_length(k, count("n_units", m))
    theta = real_numbers("theta", theta)
    require(bool(((theta >= 0) & (theta <= math.pi)).all()), "theta is the angle between two data, from 0 to pi")
    return theta * m / TURN


def false_negative_rate(theta: Angles, n_units: int, hash_length: int = 1) -> Floats:
    r"""Return the probability that two data at an angle θ differ in their codes; uniform density, units at optimum.

    .. math:: P = \min\Bigl(1, \frac{m\theta}{2\pi}\Bigr)\quad\text{for every } 1\le k\le m-1,
              \qquad P = 0\quad\text{for } k = m

    Any k has m arcs of equal width, so only k = m differs.
    """
    cells = _cells_apart(theta, n_units, hash_length)
    return np.minimum(1, cells) if hash_length < n_units else np.zeros_like(cells)


def expected_hamming(theta: Angles, n_units: int, hash_length: int = 1) -> Floats:
    r"""Return the mean Hamming distance of the codes of two data at an angle θ; uniform density, units at optimum.

    .. math:: \mathbb E\,d_H = 2\min\Bigl(\frac{m\theta}{2\pi},\ k,\ m-k\Bigr)
    """
    return 2 * np.minimum(_cells_apart(theta, n_units, hash_length), min(hash_length, n_units - hash_length))


def unit_density(phi: Angles, sigma: float | None = None) -> Floats:
    r"""Return the density of many units at their optimum, :math:`\propto\rho^{1/3}`: the data's, three times as wide.

    Hence :func:`quantile` of ``3 * sigma`` at (i - ½)/m places m units almost where they belong.
    """
    return density(phi, None if sigma is None else 3 * sigma)


def many_unit_energy(n_units: int, sigma: float | None = None) -> float:
    r"""Return the lowest energy of many units up to terms of order :math:`1/m^4`.

    .. math:: E \simeq -1 + \frac{1}{24m^2}\Bigl(\int\rho^{1/3}d\varphi\Bigr)^3
    """
    wide = None if sigma is None else 3 * sigma
    return -1 + _peak(sigma) / _peak(wide) ** 3 / (24 * n_units**2)
