"""Certified Gittins indices of a normal arm with known variance: the published table "gittins" (chapter of that name)."""
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import numpy as np
import pandas as pd

from lib import dp

GAMMAS = (.5, .6, .7, .8, .9, .95, .99, .995, .999, .9995)
SAMPLES = (*range(1, 101), *range(110, 201, 10), *range(250, 1001, 50))
TOL, DIGITS = 1e-8, 11
# Indices as a Matlab function by B. Palmintier (2010) has them, after table 10.2 of Powell (2007): a row for each n, a column for each gamma
TRANSCRIBED = pd.DataFrame({
    0.95: [.9956, .6343, .4781, .3878, .3281, .2853, .2528, .2274, .2069, .1889,
           .1058, .0739, .0570, .0464, .0392, .0339, .0299, .0267, .0242],
    0.99: [1.5758, 1.0415, .8061, .6677, .5747, .5072, .4554, .4144, .3808, .3528,
           .2094, .1520, .1202, .0998, .0855, .0749, .0667, .0602, .0549]}, [*range(1, 11), *range(20, 101, 10)])


def outward(number, rounding):
    """A decimal of DIGITS digits on the side that `rounding` says, as text."""
    return str(Context(prec=DIGITS, rounding=rounding).create_decimal(Decimal(float(number))))


def gittins(gammas=GAMMAS, samples=SAMPLES, tol=TOL):
    """Brackets for prior mean 0, prior variance 1/n and noise variance 1: gamma, n, lower, upper; decimals rounded outward, as text."""
    rows = []
    for gamma in gammas:
        found = dp.gittins_index(0.0, 1 / np.array(samples), gamma, tol=tol)
        rows += [(gamma, n, outward(low, ROUND_FLOOR), outward(high, ROUND_CEILING))
                 for n, low, high in zip(samples, found.lower, found.upper)]
    return pd.DataFrame(rows, columns=["gamma", "n", "lower", "upper"])
