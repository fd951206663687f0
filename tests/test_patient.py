"""What learning costs over a long life: certified brackets, a plain recursion, the asymptotic slope, planted errors."""
import numpy as np
import pytest
from scipy.stats import norm

from lib import dp
from lib.dp import patient
from lib.normal import PHI0


def plain(life, levels=60, reach=6.0, spacing=.02):
    """Hindsight less the optimum by a recursion in w itself, item by item, over an even lattice of means."""
    gamma, m = 1 - 1 / life, np.arange(-reach, reach + spacing / 2, spacing)
    w = np.maximum(m, 0) * life
    for b in range(levels, 0, -1):
        t = (1 / b - 1 / (b + 1))**.5
        z = norm.ppf((np.arange(200) + .5) / 200)
        z /= (z**2).mean()**.5
        later = np.interp(m[:, None] + t * z, m, w).mean(axis=1)
        later[-1] = m[-1] * (life - 1) / gamma
        w = np.maximum(0, m + gamma * np.where(m + 8 * t > reach, np.maximum(m, 0) * life, later))
    return PHI0 * life - w[len(m) // 2]


@pytest.mark.parametrize("gamma, tol, far", [(.5, 1e-5, 5e-4), (.9, 1e-5, 5e-4), (.99, 1e-5, 5e-4), (.999, 1e-4, 5e-4)])
def test_certified_brackets_agree(gamma, tol, far):
    low, _, high = dp.value(dp.solve([1.0], [1.0], gamma, 1.0, 1.0, tol, between=False), 0.0, 1.0)
    hindsight, found = PHI0 / (1 - gamma), dp.patient_regret(1 / (1 - gamma))
    assert hindsight - high - far * found <= found <= hindsight - low + far * found


def test_a_plain_recursion_agrees():
    assert dp.patient_regret(10.0) == pytest.approx(plain(10.0), rel=.02)


def test_the_arithmetic_has_converged(monkeypatch):
    once = dp.patient_regret(1e4)
    monkeypatch.setattr(patient, "NODES", 16)
    assert dp.patient_regret(1e4) == pytest.approx(once, rel=2e-4)
    monkeypatch.setattr(patient, "NODES", 8)
    monkeypatch.setattr(patient, "STEP", .02)
    assert dp.patient_regret(1e4) == pytest.approx(once, rel=1e-3)


@pytest.mark.parametrize("name, value", [("END", .3), ("WIDTH", 1.0), ("STEP", 2.0)])
def test_planted_errors_are_found(monkeypatch, name, value):
    right = dp.patient_regret(1e3)
    monkeypatch.setattr(patient, name, value)
    assert abs(dp.patient_regret(1e3) / right - 1) > 1e-3


def test_blocks_lose():
    """Whoever decides more rarely earns no more."""
    regret = [patient.regret_in_blocks(1e4, step) for step in (.005, .02, .1)]
    assert regret == sorted(regret)


@pytest.mark.slow
def test_the_slope_is_approached():
    missed = []
    for life in (1e5, 1e8, 1e11):
        gained = (dp.patient_regret(1.5 * life) - dp.patient_regret(life)) / np.log(1.5)
        missed.append((gained - dp.regret_slope(1.5**.5 * life)) / PHI0)
    assert .02 < missed[2] < missed[1] < missed[0] < .06, missed


@pytest.mark.parametrize("function, life", [(dp.patient_regret, 1.9), (dp.patient_regret, 1e17), (dp.regret_slope, 299.0)])
def test_other_lives_are_refused(function, life):
    with pytest.raises(ValueError, match="life is"):
        function(life)
