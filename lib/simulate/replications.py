"""Monte Carlo over users: the discounted rewards of policies on common random numbers.

All policies meet the same theta, items and noise, so differences between them are paired.  What they meet may
come from another problem than the one that they believe in (`truth`).  Replication r depends on (seed, r) alone:
not on the number of replications, the horizon, the policies beside it or the threads.  Blocks of replications
run in threads, as many as numba would use (NUMBA_NUM_THREADS).
"""
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numba
import numpy as np

from lib import streams
from lib.bound import hindsight
from lib.policies import compile_rules, lookahead
from lib.policies.index import THOMPSON
from lib.policies.rules import KINDS
from lib.problem import as_floats
from lib.simulate import kernels, vectorized
from lib.simulate.arrays import Stream
from lib.simulate.compiled import make_scene


class Episodes(NamedTuple):
    """What R replications met and what P policies did."""

    theta: np.ndarray       # (R, k)
    items: np.ndarray       # (R, horizon) indices into problem.items
    feedback: np.ndarray    # (R, horizon) y, seen by a policy only where it forwarded
    thompson: np.ndarray    # (R, horizon) the standard normals of Thompson sampling
    decisions: np.ndarray   # (P, R, horizon) True where forwarded
    rewards: np.ndarray     # (P, R) discounted


def replicate(problem, policies, replications, horizon=100, seed=0, thetas=None, reward="expected", first=0,
              truth=None):
    """Discounted rewards of policies on common random numbers (paper, equation 2).

    Parameters
    ----------
    problem : Problem
    policies : sequence of Policy
    replications : int
        Number of users.
    horizon : int
        Items a user meets; `truncation` bounds what comes after.
    seed : int or sequence of int
    thetas : array-like (m, k), optional
        Preferences of real users, replication r has thetas[r % m]; drawn from the prior when absent.
    reward : {"expected", "realised"}
        Count x.theta - cost or y - cost for a forwarded item.  The noise of an item is independent of the
        decision to forward it, so both have the same mean; the first usually varies less (chapter "Formulation").
    first : int
        Number of the first replication, to run a long experiment in pieces.
    truth : Problem, optional
        What users, items, feedback and rewards really come from, where that is not what the policies believe:
        item i of `problem` is item i of `truth`, which may differ in everything but cost and gamma.

    Returns
    -------
    ndarray (policy, replication)
        sum over n of gamma^n U_n (x_n.theta - cost), in reward units.

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib.policies import exploit
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1]], [1], [1], [[0]], 1, .5, .5)
    >>> replicate(problem, [exploit()], 2, horizon=2)
    array([[0.375, 0.375]])
    """
    run = _runner(problem, policies, horizon, seed, thetas, reward, truth)
    pieces = _pieces(_count("first", first, 0), _count("replications", replications, 1))
    rewards = np.empty((len(policies), replications))
    threads, left = min(numba.get_num_threads(), len(pieces)), iter(pieces)

    def work(_):
        for piece in left:              # shared by the threads, so that one holds one piece at a time
            at = piece[0] * streams.BLOCK - first
            rewards[:, at + piece[1]:at + piece[2]] = run(piece).rewards

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    return rewards


def episodes(problem, policies, replications, horizon=100, seed=0, thetas=None, reward="expected", first=0, truth=None):
    """The same replications item by item, for pictures and checks: an Episodes; arguments as `replicate`."""
    run = _runner(problem, policies, horizon, seed, thetas, reward, truth)
    pieces = [run(piece) for piece in _pieces(_count("first", first, 0), _count("replications", replications, 1))]
    return Episodes(*(np.concatenate(parts, axis=axis) for axis, parts in zip((0, 0, 0, 0, 1, 1), zip(*pieces))))


def truncation(problem, horizon=100):
    """What a policy can still lose and gain after `horizon` items: (lowest, highest), both around 0.

    The remainder of any policy's value lies between gamma^horizon times the value of forwarding all items
    that lose, and that of forwarding all that gain, theta known: the hindsight bound and its mirror image.
    """
    left = problem.gamma ** _count("horizon", horizon, 1)
    mirrored = problem._replace(mu=-problem.mu, cost=-problem.cost)
    return -left * hindsight(mirrored), left * hindsight(problem)


def _count(name, value, low):
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
        raise ValueError(f"{name} must be an integer of at least {low}, got {value!r}")
    return int(value)


def _pieces(first, replications):
    """(block, row, end) for each block of random numbers that the replications touch."""
    size, last = streams.BLOCK, first + replications
    return [(b, max(first - b * size, 0), min(last - b * size, size)) for b in range(first // size, -(-last // size))]


def _true(problem, truth):
    """`truth`, or `problem` without one, checked."""
    truth = problem if truth is None else truth
    for name, of in (("number of items", lambda p: len(p.items)), ("cost", lambda p: p.cost), ("gamma", lambda p: p.gamma)):
        if of(truth) != of(problem):
            raise ValueError(f"truth must have the {name} of the problem, {of(problem)}, got {of(truth)}")
    return truth


def _runner(problem, policies, horizon, seed, thetas, reward, truth):
    """A function from a piece (block, row, end) to its Episodes, arguments checked."""
    truth = _true(problem, truth)
    horizon, k = _count("horizon", horizon, 1), len(truth.mu)
    if reward not in ("expected", "realised"):
        raise ValueError(f'reward is {reward!r}: it must be "expected" or "realised"')
    streams.generator(seed)
    if thetas is not None:
        thetas = as_floats("thetas", thetas, 2)
        if thetas.shape[1] != k:
            raise ValueError(f"thetas must have one column per feature, got {thetas.shape[1]} for {k}")
    policies = list(policies)
    whole = [p for p, policy in enumerate(policies) if getattr(policy, "kind", "") in KINDS]
    ruled = [p for p in range(len(policies)) if p not in whole]
    rules = compile_rules(problem, [policies[p] for p in ruled]) if ruled or not whole else None
    ahead = lookahead.make_runner(problem, [policies[p] for p in whole], horizon) if whole else None
    scene, order = make_scene(problem, horizon)
    world, order = (scene, order) if truth is problem else make_scene(truth, horizon)
    engine = vectorized if vectorized.fits(scene) else kernels
    columns = np.ascontiguousarray(streams.factor(truth.Sigma).T)
    begin = (columns != 0).argmax(axis=1).astype(np.uint64)
    last = np.where(columns.any(axis=1), k - (columns[:, ::-1] != 0).argmax(axis=1), 0).astype(np.uint64)

    unused = np.zeros((streams.BLOCK, horizon))

    def users(block, row, end):
        if thetas is not None:
            return thetas[(block * streams.BLOCK + np.arange(row, end)) % len(thetas)]
        z = streams.normals(seed, streams.THETA, block, k)[row:end]
        theta = np.empty_like(z)
        kernels.correlate(truth.mu, columns, begin, last, z, theta)
        return theta

    def run(piece):
        block, row, end = piece
        theta = users(block, row, end)
        uniforms = streams.uniforms(seed, streams.ITEMS, block, horizon)[row:end]
        noise = streams.normals(seed, streams.NOISE, block, horizon)[row:end]
        drawn = rules is not None and (rules.kind == THOMPSON).any()
        z = streams.normals(seed, streams.THOMPSON, block, horizon)[row:end] if drawn else unused[row:end]
        stream = Stream(np.empty(noise.shape, np.int64), np.empty_like(noise), np.empty_like(noise), z)
        kernels.arrive(world, np.ascontiguousarray(theta[:, order]), uniforms, noise, reward == "realised", stream)
        rewards = np.empty((len(policies), len(theta)))
        decisions = np.empty(rewards.shape + (horizon,), np.bool_)
        for rows, play in ((ruled, partial(engine.run, scene, rules)), (whole, ahead)):
            if rows:
                part = rewards[rows], decisions[rows]
                play(stream, *part)
                rewards[rows], decisions[rows] = part
        return Episodes(theta, stream.items, stream.feedback, z, decisions, rewards)

    return run
