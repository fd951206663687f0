"""A service that meets users one after another and learns the prior of the next from those before.

A session is the paper's problem with the prior that the service has by then.  Between sessions the service looks at what its own
forwards have shown.  Randomness depends on (seed, run) alone: all services see the same users, items and noise.
"""
from typing import NamedTuple

import numpy as np

from lib import population, streams
from lib.compiled import jit, put
from lib.policies import compile_rules, lookahead
from lib.policies.rules import GRADIENT, INDEX, Policy, entry
from lib.posterior import compile_problem, dot, learn, project
from lib.problem import (as_choice, as_count, as_covariance, as_floats, as_made, as_scalar, checked, noise_var)
from lib.threads import side_by_side

EACH, SELDOM = 20, 5       # users after each of whom the prior is estimated anew, and after how many more again
LEARNS = ("all", "nothing", "mean", "prior")
DOUBTS = ("counted", "ignored", "drawn")


class Start(NamedTuple):
    """What a service believes before its first user."""

    mu: np.ndarray          # (k,) of the mean of all users, and
    V: np.ndarray           # (k, k) how unsure of it
    guess: np.ndarray       # (k, k) of Sigma, for services that learn it
    weight: float = 5.0     # how many users that guess counts for


class Service(NamedTuple):
    """How a service decides and learns; plain data, checked by `serve`."""

    policy: Policy              # an index policy without tables, or the knowledge gradient
    learns: str = "mean"        # "all": knows the prior; "nothing"; "mean": Sigma known; "prior": mean and Sigma, by
                                # steps of expectation-maximisation, after each user or, later on, every fifth
    doubt: str = "counted"      # of the mean: added to the users' spread, "ignored", or "drawn" from once a user
    optimism: float = 0.0       # multiples of the doubt's standard deviation that are added to an item's mean
    welcome: int = 0            # first users who are sent everything


class Served(NamedTuple):
    """What S services did in R runs of U users."""

    rewards: np.ndarray     # (S, R, U) discounted
    forwards: np.ndarray    # (S, R, U) items forwarded
    open: np.ndarray        # (S, R, U) whether any item would have been forwarded to that user first
    away: np.ndarray        # (S, R, U) root mean square error of the believed mean worth of an item, before that user


class Rule(NamedTuple):
    """A Service as the kernel reads it."""

    gradient: bool
    alpha: float            # of the knowledge gradient
    bonus: np.ndarray       # (n,) multiples of the standard deviation
    ties: bool
    learns: int
    doubt: int
    optimism: float
    welcome: int


class Crowd(NamedTuple):
    """What one run meets."""

    items: np.ndarray       # (U, horizon)
    feedback: np.ndarray    # (U, horizon)
    pay: np.ndarray         # (U, horizon)
    draws: np.ndarray       # (U, k) standard normals


@jit
def goes(instance, ahead, rule, lift, mu, Sigma, i, room):
    """Is item i forwarded in this belief?  Eight arguments: a tuple of them would cost a kernel time at every item."""
    mean = dot(instance, i, mu) + lift[i]
    if rule.gradient:
        later = rule.alpha * instance.gamma / (1 - instance.gamma)
        return lookahead.outweighs(instance, ahead, (mu, Sigma), i, mean - instance.cost, later)
    index = mean
    if rule.bonus[i] > 0.0:
        index += rule.bonus[i] * np.sqrt(project(instance, i, Sigma, room))
    return index > instance.cost or (rule.ties and index == instance.cost)


@jit
def session(instance, ahead, rule, lift, belief, items, feedback, known):
    """One user: `belief` is moved in place, and known[i] is 1 where the last belief forwards item i, 0 not, -1 unasked.

    Returns the forwards as an array (horizon,) of bool.  Eight arguments: how the service decides, what it believes, whom it meets.
    """
    mu, Sigma = belief
    sent, room = np.zeros(len(items), np.bool_), np.empty(len(mu))
    known[:] = -1
    for n in range(len(items)):
        i = items[n]
        if known[i] < 0:
            known[i] = 1 if goes(instance, ahead, rule, lift, mu, Sigma, i, room) else 0
        if known[i] == 1:
            sent[n] = True
            learn(instance, i, feedback[n], mu, Sigma, room)
            known[:] = -1
    return sent


@jit
def summarise(instance, items, feedback, sent, gram, moment):
    """A user's gram and moment, in place."""
    for n in range(len(items)):
        if sent[n]:
            i = items[n]
            for e in range(instance.start[i], instance.start[i + 1]):
                a, x = instance.feature[e], instance.size[e] / instance.noise_var[i]
                moment[a] += x * feedback[n]
                for f in range(instance.start[i], instance.start[i + 1]):
                    gram[a, instance.feature[f]] += x * instance.size[f]


@jit
def opening(instance, rule, welcome, mean, doubt, Sigma, normal, lift):
    """The prior (mu, Sigma) of a session, and `lift`: what optimism adds to each item's mean, in place.

    Eight arguments: how the service decides, three of what it believes, and what a kernel has no room to make itself.
    """
    mu, spread, room = mean.copy(), Sigma.copy(), np.empty(len(mean))
    if rule.doubt == 0:
        spread += doubt
    elif rule.doubt == 2:
        values, vectors = np.linalg.eigh(doubt)
        mu += np.ascontiguousarray(vectors) @ (np.sqrt(np.maximum(values, 0.0)) * normal)
    for i in range(len(lift)):
        lift[i] = rule.optimism * np.sqrt(project(instance, i, doubt, room)) if rule.optimism > 0.0 else 0.0
        if welcome:
            lift[i] = np.inf
    return mu, spread


@jit
def judge(instance, ahead, rule, lift, belief, mean, found):
    """found = (open, away): would any item be forwarded, and how far off is the mean that is believed?"""
    mu, Sigma = belief
    room, square, any_item = np.empty(len(mu)), 0.0, 0.0
    for i in range(len(instance.probs)):
        if instance.probs[i] > 0.0:
            square += instance.probs[i] * (dot(instance, i, mean) - dot(instance, i, instance.mu)) ** 2
            if any_item == 0.0 and goes(instance, ahead, rule, lift, mu, Sigma, i, room):
                any_item = 1.0
    found[0], found[1] = any_item, np.sqrt(square)


@jit
def run(instance, ahead, rule, start, crowd, out):
    """One service meets one run: fills out (4, U) with rewards, forwards, open and away.  `instance` has the true prior."""
    (count, _), k = crowd.items.shape, len(instance.mu)
    mean, doubt, Sigma = start.mu.copy(), start.V.copy(), instance.Sigma.copy()
    gram, moment = np.zeros((count, k, k)), np.zeros((count, k))
    lift, known = np.zeros(len(instance.probs)), np.empty(len(instance.probs), np.int64)
    if rule.learns == 0:
        put(instance.mu, mean)
        doubt[:] = 0.0
    elif rule.learns != 2:
        put(start.guess, Sigma)
    for u in range(count):
        mu, spread = opening(instance, rule, u < rule.welcome, mean, doubt, Sigma, crowd.draws[u], lift)
        judge(instance, ahead, rule, lift, (mu, spread), mean, out[2:, u])
        sent = session(instance, ahead, rule, lift, (mu, spread), crowd.items[u], crowd.feedback[u], known)
        for n in range(len(sent)):
            if sent[n]:
                out[0, u] += crowd.pay[u, n]
                out[1, u] += 1.0
        if not sent.any():
            continue
        summarise(instance, crowd.items[u], crowd.feedback[u], sent, gram[u], moment[u])
        if rule.learns == 2:
            population.pool(mean, doubt, Sigma, gram[u], moment[u])
        elif rule.learns == 3 and (u < EACH or u % SELDOM == 0):
            so_far = population.Users(gram[:u + 1], moment[:u + 1])
            info = population.climb(so_far, mean, Sigma, start.mu, start.V, start.guess, start.weight)
            put(start.V @ np.linalg.inv(np.eye(k) + info @ start.V), doubt)


def as_start(start, k):
    """`start` checked for k features, or ValueError."""
    as_made("start", start, Start, "lib.simulate.Start")
    mu = as_floats("mu of start", start.mu, 1)
    if mu.shape != (k,):
        raise ValueError(f"mu of start must have one element per feature, got {len(mu)} for {k}")
    guess = as_covariance("guess of start", start.guess, k)
    if np.linalg.eigvalsh(guess)[0] <= 0:
        raise ValueError("guess of start must be positive definite")
    return Start(mu, as_covariance("V of start", start.V, k), guess, as_scalar("weight of start", start.weight, 0))


def as_rule(problem, service):
    """The kernel's Rule of a Service, or ValueError."""
    as_made("services", service, Service, "lib.simulate.Service")
    family = entry(service.policy, "services")
    if family.rule not in (INDEX, GRADIENT):
        raise ValueError(f"services holds {service.policy!r}: its tables rest on one prior, and a service's changes")
    learns, doubt = as_choice("learns", service.learns, LEARNS), as_choice("doubt", service.doubt, DOUBTS)
    optimism = as_scalar("optimism", service.optimism)
    if optimism < 0:
        raise ValueError(f"optimism is {optimism}: it must not be negative")
    index = family.rule == INDEX
    bonus = compile_rules(problem, [service.policy]).bonus[0] if index else np.zeros(len(problem.items))
    return Rule(not index, float(service.policy.alpha), bonus, bool(family.ties), LEARNS.index(learns), DOUBTS.index(doubt), optimism,
                as_count("welcome", service.welcome, 0))


def crowd(problem, seed, run, users, horizon):
    """The Crowd of one run."""
    draw = [streams.generator(seed, streams.Purpose.SERVICES, run, part) for part in range(4)]
    theta = problem.mu + draw[0].standard_normal((users, len(problem.mu))) @ streams.factor(problem.Sigma).T
    items = streams.draw_items(problem.probs, draw[1].random((users, horizon)))
    worth = np.einsum("unk,uk->un", problem.items[items], theta)
    feedback = worth + np.sqrt(noise_var(problem))[items] * draw[2].standard_normal((users, horizon))
    pay = problem.gamma ** np.arange(1, horizon + 1) * (worth - problem.cost)
    return Crowd(items, feedback, pay, draw[3].standard_normal((users, len(problem.mu))))


def serve(problem, services, start, users=200, runs=16, horizon=60, seed=0):
    """Services that learn the prior from the users whom they serve, on common random numbers.

    Parameters
    ----------
    problem : Problem
        With the true prior, which services do not know.
    services : sequence of Service
    start : Start
        What they believe before the first user.
    users, runs, horizon : int
        Users of a run, independent runs, items a user meets.
    seed : int or sequence of int

    Returns
    -------
    Served

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib.policies import exploit
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1]], [1], [1], [[.5]], 1, 0, .5)
    >>> too_low = Start([-1], [[.1]], [[.5]])
    >>> serve(problem, [Service(exploit(), "all"), Service(exploit())], too_low, 5, 2, 9).forwards.sum(axis=(1, 2)) > 0
    array([ True, False])
    """
    problem, users, horizon = checked(problem), as_count("users", users), as_count("horizon", horizon)
    start, runs = as_start(start, len(problem.mu)), as_count("runs", runs)
    streams.generator(seed)
    if not isinstance(services, (list, tuple)) or not services:
        raise ValueError(f"services is {services!r}: it must be a list of at least one Service")
    rules = [as_rule(problem, service) for service in services]
    instance, ahead = compile_problem(problem), lookahead.make_lookahead(problem, [], 1)
    out = np.zeros((len(rules), runs, 4, users))

    def work(r):
        met = crowd(problem, seed, r, users, horizon)
        for s, rule in enumerate(rules):
            run(instance, ahead, rule, start, met, out[s, r])

    side_by_side(work, range(runs))
    return Served(out[:, :, 0], out[:, :, 1].astype(int), out[:, :, 2] > 0, out[:, :, 3])
