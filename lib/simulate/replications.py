"""Monte Carlo over users: the discounted rewards of policies on common random numbers.

All policies meet the same theta, items and noise, so differences between them are paired.  What they meet may
come from another problem than the one that they believe in (`truth`).  Replication r depends on (seed, r) alone:
not on the number of replications, the horizon, the policies beside it or the threads.  Blocks of replications
run in threads, as many as numba would use (NUMBA_NUM_THREADS).
"""
from typing import NamedTuple

import numpy as np

from lib import streams
from lib.bound import hindsight
from lib.policies import compile_rules, lookahead
from lib.policies.rules import THOMPSON, as_policies, entry
from lib.posterior import COARSE, FINEST, blocks, compile_problem, noise_share
from lib.problem import Problem, as_choice, as_count, as_floats, as_made, as_numbers, as_positions, checked
from lib.simulate import kernels, square_root, vectorized
from lib.simulate.instances import Stream, group
from lib.threads import side_by_side


class Episodes(NamedTuple):
    """What R replications met and what P policies did."""

    theta: np.ndarray       # (R, k)
    items: np.ndarray       # (R, horizon) indices into problem.items
    feedback: np.ndarray    # (R, horizon) y, seen by a policy only where it forwarded
    thompson: np.ndarray    # (R, horizon) the standard normals of Thompson sampling
    decisions: np.ndarray   # (P, R, horizon) True where forwarded
    rewards: np.ndarray     # (P, R) discounted


class Setting(NamedTuple):
    """How users are simulated, whatever the policies: the arguments of `replicate`, checked."""

    truth: Problem          # what users, items, feedback and rewards come from
    horizon: int
    seed: object
    thetas: object          # (m, k) of real users, or None
    realised: bool          # count y rather than x.theta


def replicate(problem, policies, replications, horizon=100, seed=0, thetas=None, *, reward="expected", first=0,
              truth=None):
    """Discounted rewards of policies on common random numbers (paper, equation 2).

    Nine arguments: the first six are what an experiment is, and the book's other chapters give no more; the last
    three, by name only, are each used alone.

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
    policies = as_policies("policies", policies)
    run = _runner(problem, policies, _setting(problem, horizon, seed, thetas, reward, truth))
    return _all_pieces(lambda piece: run(piece)[0].rewards, len(policies), first, replications)


def replicate_controlled(problem, policies, replications, horizon=100, seed=0, thetas=None, *, first=0):
    """The rewards of `replicate`, and below them a control variate for all of them: what hindsight earns, less its mean.

    Hindsight forwards the items that are worth their cost.  Where many are, what it earns of the `horizon` items that come makes
    up most of what lets users differ, whatever the policy.  Its mean is known: given theta where users are real.

    Parameters
    ----------
    problem, policies, replications, horizon, seed, thetas, first
        As `replicate` takes them.

    Returns
    -------
    ndarray (policies + 1, replication)
        The last row has mean zero, of each user where users are real.

    Raises
    ------
    ValueError
        As `replicate`.

    Examples
    --------
    >>> from lib.policies import exploit
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1]], [1], [1], [[0]], 1, .5, .5)
    >>> replicate_controlled(problem, [exploit()], 2, horizon=2)
    array([[0.375, 0.375],
           [0.   , 0.   ]])
    """
    policies, setting = as_policies("policies", policies), _setting(problem, horizon, seed, thetas, "expected", None)
    run = _runner(problem, policies, setting)

    def piece_of(piece):
        seen, pay = run(piece)
        return np.vstack([seen.rewards, np.maximum(pay, 0).sum(axis=1)])

    rows = _all_pieces(piece_of, len(policies) + 1, first, replications)
    mean = (1 - setting.truth.gamma**setting.horizon) * hindsight_given(setting.truth, setting.thetas)
    rows[-1] -= mean if setting.thetas is None else mean[(first + np.arange(replications)) % len(mean)]
    return rows


def hindsight_given(problem, thetas):
    """`bound.hindsight` of each of some users: (m,) of thetas (m, k), or one number, the mean over users, where they are None."""
    if thetas is None:
        return hindsight(problem)
    earned = np.zeros(len(thetas))
    for rows in blocks(len(problem.items), len(thetas)):
        earned += problem.probs[rows] @ np.maximum(problem.items[rows] @ thetas.T - problem.cost, 0)
    return problem.gamma / (1 - problem.gamma) * earned


def _all_pieces(rewards_of, rows, first, replications):
    """`rewards_of(piece)`, `rows` each, of all pieces that the replications touch."""
    pieces = _pieces(as_count("first", first, 0), as_count("replications", replications, 1))
    rewards = np.empty((rows, replications))

    def work(piece):
        at = piece[0] * streams.BLOCK - first
        rewards[:, at + piece[1]:at + piece[2]] = rewards_of(piece)

    side_by_side(work, pieces)
    return rewards


def episodes(problem, policies, replications, horizon=100, seed=0, thetas=None, *, reward="expected", first=0, truth=None):
    """The same replications item by item, for pictures and checks: an Episodes; the nine arguments of `replicate`."""
    policies = as_policies("policies", policies)
    run = _runner(problem, policies, _setting(problem, horizon, seed, thetas, reward, truth))
    pieces = [run(piece)[0] for piece in _pieces(as_count("first", first, 0), as_count("replications", replications, 1))]
    users = {name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in Episodes._fields[:4]}
    acted = {name: np.concatenate([getattr(piece, name) for piece in pieces], axis=1) for name in Episodes._fields[4:]}
    return Episodes(**users, **acted)


def play(problem, policies, stream):
    """Policies on users, items and feedback that are given: what `replicate` does after drawing them.

    Parameters
    ----------
    problem : Problem
        What the policies believe.
    policies : sequence of Policy
    stream : Stream
        What R users meet over a horizon.

    Returns
    -------
    rewards : ndarray (P, R)
    decisions : ndarray (P, R, horizon) of bool

    Raises
    ------
    ValueError
        Naming the argument, or the field of it, and the value that is wrong.
    """
    problem, policies = checked(problem), as_policies("policies", policies)
    stream = _stream(problem, stream)
    rewards = np.empty((len(policies), len(stream.items)))
    decisions = np.empty(rewards.shape + (stream.items.shape[1],), np.bool_)
    grouped, _ = group(problem, stream.items.shape[1])
    _player(problem, policies, grouped)(stream, rewards, decisions)
    return rewards, decisions


def _stream(problem, stream):
    """`stream` as arrays of one shape (R, horizon) that kernels can read, or ValueError."""
    as_made("stream", stream, Stream, "lib.simulate.Stream")
    items, *others = (np.ascontiguousarray(as_numbers(name, part)) for name, part in stream._asdict().items())
    for name, part in zip(Stream._fields, (items, *others)):
        if part.ndim != 2 or not part.size or part.shape != items.shape:
            raise ValueError(f"{name} of the stream must have shape (R, horizon) as items has, {items.shape}, got {part.shape}")
    return Stream(as_positions("items", items.ravel(), len(problem.items)).reshape(items.shape), *others)


def truncation(problem, horizon=100):
    """What a policy can still lose and gain after `horizon` items: (lowest, highest), both around 0.

    The remainder of any policy's value lies between gamma^horizon times the value of forwarding all items
    that lose, and that of forwarding all that gain, theta known: the hindsight bound and its mirror image.
    """
    problem = checked(problem)
    left = problem.gamma ** as_count("horizon", horizon, 1)
    mirrored = problem._replace(mu=-problem.mu, cost=-problem.cost)
    return -left * hindsight(mirrored), left * hindsight(problem)


def _pieces(first, replications):
    """(block, row, end) for each block of random numbers that the replications touch."""
    size, last = streams.BLOCK, first + replications
    return [(b, max(first - b * size, 0), min(last - b * size, size)) for b in range(first // size, -(-last // size))]


def _setting(problem, horizon, seed, thetas, reward, truth):
    """The Setting of checked arguments."""
    problem = checked(problem)
    truth = problem if truth is None else checked(truth, "truth")
    for name, of in (("number of items", lambda p: len(p.items)), ("cost", lambda p: p.cost), ("gamma", lambda p: p.gamma)):
        if of(truth) != of(problem):
            raise ValueError(f"truth must have the {name} of the problem, {of(problem)}, got {of(truth)}")
    as_choice("reward", reward, ("expected", "realised"))
    streams.generator(seed)
    if thetas is not None:
        thetas = as_floats("thetas", thetas, 2)
        if thetas.shape[1] != len(truth.mu):
            raise ValueError(f"thetas must have one column per feature, got {thetas.shape[1]} for {len(truth.mu)}")
    return Setting(truth, as_count("horizon", horizon, 1), seed, thetas, reward == "realised")


def _player(problem, policies, grouped):
    """A function (stream, rewards, decisions) that lets policies meet a stream and fills the two arrays."""
    whole = [p for p, policy in enumerate(policies) if entry(policy).rule > THOMPSON]      # they look at the whole belief
    index = [p for p in range(len(policies)) if p not in whole]
    engines = []
    if index or not whole:                                  # without any policy, the compiler says so
        rules = compile_rules(problem, [policies[p] for p in index])
        engines.append((index, _index_engine(problem, rules, grouped)))
    if whole:
        engines.append((whole, lookahead.make_runner(problem, [policies[p] for p in whole], len(grouped.discount))))

    def fill(stream, rewards, decisions):
        for rows, engine in engines:
            part = rewards[rows], decisions[rows]
            engine(stream, *part)
            rewards[rows], decisions[rows] = part

    return fill


def _index_engine(problem, rules, grouped):
    """The loop over index policies that this problem asks for."""
    share = noise_share(problem)
    if share < FINEST:
        raise ValueError(f"noise_sd is {problem.noise_sd}: with these items and this prior it must be "
                         f"{problem.noise_sd * np.sqrt(FINEST / share):.3g} or more")
    if share < COARSE:
        instance, root = compile_problem(problem), streams.factor(problem.Sigma)
        return lambda stream, rewards, decisions: square_root.run(instance, root, rules, stream, rewards, decisions)
    engine = vectorized if vectorized.fits(grouped) else kernels
    return lambda stream, rewards, decisions: engine.run(grouped, rules, stream, rewards, decisions)


def _users(setting):
    """A function from a piece (block, row, end) to its users' theta."""
    truth, k = setting.truth, len(setting.truth.mu)
    columns = np.ascontiguousarray(streams.factor(truth.Sigma).T)
    begin = (columns != 0).argmax(axis=1).astype(np.uint64)
    last = np.where(columns.any(axis=1), k - (columns[:, ::-1] != 0).argmax(axis=1), 0).astype(np.uint64)

    def users(block, row, end):
        if setting.thetas is not None:
            return setting.thetas[(block * streams.BLOCK + np.arange(row, end)) % len(setting.thetas)]
        z = streams.normals(setting.seed, streams.THETA, block, k)[row:end]
        theta = np.empty_like(z)
        kernels.correlate(truth.mu, columns, begin, last, z, theta)
        return theta

    return users


def _runner(problem, policies, setting):
    """A function from a piece (block, row, end) to its Episodes and what forwarding each item would pay, discounted."""
    problem, users = checked(problem), _users(setting)
    grouped, order = group(setting.truth, setting.horizon)
    fill = _player(problem, policies, grouped if problem is setting.truth else group(problem, setting.horizon)[0])
    drawn = any(entry(policy).rule == THOMPSON for policy in policies)
    unused = np.zeros((streams.BLOCK, setting.horizon))

    def run(piece):
        block, row, end = piece
        theta = users(*piece)
        uniforms = streams.uniforms(setting.seed, streams.ITEMS, block, setting.horizon)[row:end]
        noise = streams.normals(setting.seed, streams.NOISE, block, setting.horizon)[row:end]
        z = streams.normals(setting.seed, streams.THOMPSON, block, setting.horizon)[row:end] if drawn else unused[row:end]
        stream = Stream(np.empty(noise.shape, np.int64), np.empty_like(noise), np.empty_like(noise), z)
        kernels.arrive(grouped, np.ascontiguousarray(theta[:, order]), uniforms, noise, setting.realised, stream)
        rewards = np.empty((len(policies), len(theta)))
        decisions = np.empty(rewards.shape + (setting.horizon,), np.bool_)
        fill(stream, rewards, decisions)
        return Episodes(theta, stream.items, stream.feedback, z, decisions, rewards), stream.pay

    return run
