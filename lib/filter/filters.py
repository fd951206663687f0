"""One user's filter: asked about an item it decides, told a rating it learns.

Decisions are those that `lib.simulate` takes on the same stream, up to rounding: the rules of index policies are
applied to mean and variance here, whole-belief policies by their own kernels.  Beliefs are tuples that are replaced, never
written to.
"""
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from lib import dp, streams
from lib.filter import files
from lib.filter.shared import Known, foreign, noise_of, put, share
from lib.policies import lookahead
from lib.policies.index import explored
from lib.policies.rules import PHASED, QUANTILE, TABLE, THOMPSON
from lib.posterior import Belief, step
from lib.problem import as_count, as_covariance, as_floats, as_scalar
from lib.simulate import Stream

KIND = "belief"
DRAWN = 256                     # normals of Thompson sampling made at once
NOTHING = np.zeros((1, 1))
MOST = 2**53                    # the largest number of a phase that is believed


class Phase(NamedTuple):
    """What phased exploration remembers beside the belief."""

    phase: np.ndarray       # (3,) number of the phase, directions explored, items left to exploit
    basis: np.ndarray       # (k, k) orthonormal rows: directions explored in this phase


class Span(NamedTuple):
    """What the kernel of phased exploration reads of a problem."""

    items: np.ndarray       # (1, k) the item that is asked about
    rank: int               # dimension of what the items span


def as_phase(content, k, rank):
    """The Phase in a state's content, or ValueError: the kernel checks nothing."""
    count, basis = content["phase"], as_floats("basis", content["basis"], 2)
    if not isinstance(count, list) or len(count) != 3:
        raise ValueError(f"phase must hold three integers, got {count!r}")
    if basis.shape != (k, k):
        raise ValueError(f"basis must have shape {(k, k)}, got {basis.shape}")
    limits = (1, MOST), (0, rank), (0, MOST)
    return Phase(np.array([as_count("phase", n, *limit) for n, limit in zip(count, limits)]), basis)


class Filter:
    """The filter of one user.

    One thread at a time may use a filter; different users' filters may work in different threads.

    Parameters
    ----------
    problem : Problem
        Filters of the same Problem object and policy share what was compiled (`share`).
    policy : Policy
    seed : int or sequence of int
        Of the normals of Thompson sampling: users need different ones, such as (0, user).

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib.policies import exploit
    >>> from lib.problem import make_problem
    >>> user = Filter(make_problem([[1, 0], [0, 1]], [.5, .5], [1, 1], [[1, 0], [0, 1]], 1, .5, .9), exploit())
    >>> user.decide([1, 0])
    True
    >>> user.learn([1, 0], -2)
    >>> user.decide([1, 0]), user.decide([0, 1]), user.mu
    (False, True, array([-0.5,  1. ]))
    """

    def __init__(self, problem, policy, seed=0):
        streams.generator(seed)
        self._shared = share(problem, policy)
        self._seed = [int(part) for part in streams.numbers(seed)]
        k = len(self._shared.problem.mu)
        self._belief, self._met, self._decided = Belief(self._shared.problem.mu, self._shared.problem.Sigma), 0, {}
        self._phase = Phase(np.array([1, 0, 0]), np.zeros((k, k))) if self._shared.family.rule == PHASED else None
        self._normals = -1, None

    @property
    def mu(self):
        """(k,) mean of the belief about the user's theta."""
        return self._belief.mu.copy()

    @property
    def Sigma(self):
        """(k, k) its covariance."""
        return self._belief.Sigma.copy()

    @property
    def met(self):
        """Number of items that it was asked about."""
        return self._met

    def decide(self, x, noise_var=None, normal=None):
        """Forward the item x?  It counts as an arrival, so ask once for each.

        Parameters
        ----------
        x : array-like (k,)
            Any vector.  One that is not in the catalogue counts as an item of probability 0: DTD-DP and DTD-UCB take the law of
            coming items from their projections on x itself, hard clusters see nothing to explore for.  DTD-DP solves a coarse
            dynamic program, some ten milliseconds, the first time that it meets one which no table of the catalogue serves.
        noise_var : float, optional
            Variance of feedback on x; by default the catalogue's, for other vectors I(x) noise_sd^2, or noise_sd^2 where
            the noise is constant.
        normal : float, optional
            The standard normal of Thompson sampling; by default drawn from the seed.

        Returns
        -------
        bool

        Raises
        ------
        ValueError
            Naming the argument and the value that is wrong.
        """
        x, item = self._item(x, noise_var)
        normal, number = None if normal is None else as_scalar("normal", normal), self._met
        self._met += 1
        rule, (mu, Sigma) = self._shared.family.rule, self._belief
        if rule == PHASED:
            return self._in_phase(x)
        if rule > THOMPSON and rule != QUANTILE:
            return self._by_kernel(x, item)
        mean, var = float(x @ mu), max(float(x @ (Sigma @ x)), 0.0)
        if rule == THOMPSON:
            item = item._replace(bonus=self._normal(number) if normal is None else normal)
        elif rule == QUANTILE:
            item = item._replace(bonus=self._shared.policy.alpha * float(ndtri(1 - 1 / (number + 2))))
        return _forwards(self._shared, item, mean, var)

    def decide_many(self, X):
        """`decide` for the rows of X (m, k), one after the other, with nothing learned between: an array (m,) of bool."""
        X = as_floats("X", X, 2)
        if X.shape[1] != len(self._belief.mu):
            raise ValueError(f"X must have one column per feature, got {X.shape[1]} for {len(self._belief.mu)}")
        return np.array([self.decide(x) for x in X], dtype=bool)

    def learn(self, x, y, noise_var=None):
        """Take in the user's feedback y on an item x that was forwarded, whether or not `decide` was asked; `noise_var` as there.

        Raises
        ------
        ValueError
            Naming the argument and the value that is wrong; the belief is then what it was.
        """
        x, known, noise_var = self._vector(x, noise_var)
        with np.errstate(over="ignore", invalid="ignore"):              # the next line says so
            belief = step(self._belief, x, as_scalar("y", y), noise_of(self._shared, x, known, noise_var))
        if not (np.isfinite(belief.mu).all() and np.isfinite(belief.Sigma).all()):
            raise ValueError(f"y is {y}: with it the belief would leave the range of numbers")
        self._belief, self._decided = belief, {}

    def state(self):
        """All that must be kept of this user: JSON, the belief in k + k (k + 1)/2 numbers, and the number of items met."""
        k = len(self._belief.mu)
        content = {"problem": self._shared.key, "policy": self._shared.policy._asdict(), "met": self._met, "seed": self._seed,
                   "mu": self._belief.mu, "Sigma": self._belief.Sigma[np.tril_indices(k)]}
        return files.sealed(KIND, content | ({} if self._phase is None else self._phase._asdict()))

    @classmethod
    def load(cls, state, problem, policy):
        """The filter whose `state` this is.

        Parameters
        ----------
        state : str
        problem : Problem
        policy : Policy

        Raises
        ------
        ValueError
            A state that is damaged, or of another problem, policy or version; or naming another argument.
        """
        content = files.opened(KIND, state, "state")
        found = cls(problem, policy)
        if content.get("problem") != found._shared.key:
            raise ValueError("state belongs to another problem")
        if content.get("policy") != policy._asdict():
            raise ValueError(f"state belongs to another policy, {content.get('policy')}")
        try:
            found._restore(content)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"state is damaged: {error}") from error
        return found

    def _restore(self, content):
        """Take over a state's content, checked part by part."""
        k, parts = len(self._belief.mu), ("mu", "Sigma", "met", "seed", *(self._phase._fields if self._phase is not None else ()))
        missing = [name for name in parts if name not in content]
        if missing:
            raise ValueError(f"it lacks {', '.join(missing)}")
        mu, lower = as_floats("mu", content["mu"], 1), as_floats("Sigma", content["Sigma"], 1)
        if len(mu) != k or len(lower) != k * (k + 1) // 2:
            raise ValueError(f"mu and Sigma hold {len(mu)} and {len(lower)} numbers for {k} features")
        Sigma = np.zeros((k, k))
        Sigma[np.tril_indices(k)] = lower
        streams.generator(content["seed"])
        self._belief = Belief(mu, as_covariance("Sigma", Sigma + np.tril(Sigma, -1).T, k))
        self._met, self._seed = as_count("met", content["met"], 0), content["seed"]
        if self._phase is not None:
            self._phase = as_phase(content, k, self._shared.ahead.rank)

    def _vector(self, x, noise_var):
        """`x` as k finite numbers, its Known where the catalogue has it, and `noise_var`; or ValueError."""
        k = len(self._belief.mu)
        if noise_var is None and type(x) is np.ndarray and x.dtype == np.float64 and x.shape == (k,):
            item = self._shared.known.get(x.tobytes())
            if item is not None:                        # the quick way
                return x, item, None
        x = as_floats("x", x, 1) + 0.0
        if x.shape != (k,):
            raise ValueError(f"x must have one element per feature, got {x.shape[0]} for {k}")
        if np.abs(x).max() > self._shared.most:
            raise ValueError(f"x is too large, {np.abs(x).max():.3g}: squares of rewards must stay below 1e300")
        noise_var = None if noise_var is None else as_scalar("noise_var", noise_var, 0)
        item = self._shared.known.get(x.tobytes())
        return x, item if item and noise_var in (None, item.noise_var) else None, noise_var

    def _item(self, x, noise_var):
        """`x` as k finite numbers and its Known, or ValueError."""
        x, item, noise_var = self._vector(x, noise_var)
        return x, item or foreign(self._shared, x, noise_var)

    def _normal(self, number):
        """The number-th standard normal of this user."""
        block, place = divmod(number, DRAWN)
        if self._normals[0] != block:
            self._normals = block, streams.generator(self._seed, streams.Purpose.SERVICE, block).standard_normal(DRAWN)
        return float(self._normals[1][place])

    def _by_kernel(self, x, item):
        """The decision of a policy that looks at the whole belief; kept until the belief changes."""
        key = x.tobytes(), item.noise_var
        if key not in self._decided:
            if item.place >= 0:
                self._decided[key] = self._run(item.place)
            else:
                with self._shared.lock:
                    self._decided[key] = self._run(put(self._shared, x, item))
        return self._decided[key]

    def _run(self, row):
        """What the policy's kernel says of the item in `row`."""
        instance = self._shared.instance._replace(mu=self._belief.mu, Sigma=self._belief.Sigma)
        stream, decided = Stream(np.array([[row]]), NOTHING, NOTHING, NOTHING), np.empty((1, 1, 1), np.bool_)
        lookahead.run(instance, self._shared.ahead, self._shared.rules, stream, np.empty((1, 1)), decided)
        return bool(decided[0, 0, 0])

    def _in_phase(self, x):
        """The decision of phased exploration, and what it then has explored."""
        state = Phase(*(part.copy() for part in self._phase))
        net = float(x @ self._belief.mu) - self._shared.problem.cost
        found = lookahead.phased(Span(x[None].copy(), self._shared.ahead.rank), state, 0, self._shared.policy.alpha, net)
        self._phase = state
        return bool(found)


def exploration_benefit(table, z, var):
    """Exploration benefit / sd of an item at standardised net mean z <= 0 and variance var, from a table of its own."""
    var = min(var, table.var_max)
    discard, forward = dp.q_values(table, z * sqrt(var), var)
    return max(float(forward - discard) / sqrt(var) - z, 0.0)


def _forwards(shared, item: Known, mean, var):
    """The index rule of lib.simulate: forward iff mean + bonus sd exceeds the cost, or equals it where ties."""
    bonus, cost = item.bonus, shared.problem.cost
    if shared.family.rule == TABLE and mean <= cost and var > 0.0 and bonus > 0.0:
        z = (mean - cost) / sqrt(var)
        own = isinstance(item.rules, dp.Table)
        bonus *= exploration_benefit(item.rules, z, var) if own else explored(item.rules, 0, item.column, z, var)
    index = mean + bonus * sqrt(var)
    return bool(index > cost or index == cost and (shared.family.ties or shared.family.rule == QUANTILE))
