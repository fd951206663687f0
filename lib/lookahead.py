"""Policies beyond the paper that look at the whole belief, as plain data, and what their kernels read.

    knowledge_gradient   forwards when what one feedback adds to every later item's value outweighs the loss
    scores               the same lookahead on one number only, the item's own score
    information_directed forwards while that lowers squared regret per bit of information
    bayes_ucb            UCB whose bonus is a posterior quantile that rises with time
    phased               explores until the forwards span the items, exploits for a while, explores again
    rollout              UCB, overruled where simulated futures clearly disagree

They run in `simulate.replicate` beside the policies of policies.py.  Formulas: chapter "Policies beyond the paper".
"""
import numpy as np
from scipy.special import ndtri

from lib import foresight, streams
from lib.policies import Policy, mean_projection, weight
from lib.problem import noise_var

KINDS = {"knowledge_gradient": foresight.GRADIENT, "scores": foresight.SCORES, "directed": foresight.DIRECTED,
         "bayes_ucb": foresight.QUANTILE, "phased": foresight.PHASED, "rollout": foresight.ROLLOUT}
FUTURES = 40            # purpose of the stream that rollouts sample from
REST = 0.02             # discounted weight at which a rollout stops


def knowledge_gradient(alpha=1.0):
    """Forward iff alpha gamma/(1-gamma) E_X'[st f(|X'.mu - cost|/st)] > cost - x.mu (Ryzhov, Powell and Frazier 2012).

    st = |X' Sigma x| / sqrt(x Sigma x + noise_var(x)) is the step of X'.mu that feedback on x brings, and
    f(z) = phi(z) - z Phi(-z).  Exact if x were the last item to learn from.

    Examples
    --------
    >>> knowledge_gradient().alpha
    1.0
    """
    return Policy("knowledge_gradient", weight(alpha))


def scores(alpha=1.0):
    """Forward iff alpha gamma/(1-gamma) M(x) st f(|x.mu - cost|/st) > cost - x.mu (after Zhang, Xu and Callan 2003).

    st = x Sigma x / sqrt(x Sigma x + noise_var(x)); a coming item counts as x scaled by its projection on x.
    """
    return Policy("scores", weight(alpha))


def information_directed(alpha=1.0):
    """Information-directed sampling with contexts, made deterministic (after Russo and Van Roy 2018).

    Items are taken in increasing order of loss per information, (cost - x.mu) / I(x) with
    I(x) = log(1 + x Sigma x / noise_var(x))/2, as long as it stays below alpha R/(2 G): R is the expected
    regret of one arrival and G its expected information under the items taken so far.
    """
    return Policy("directed", weight(alpha))


def bayes_ucb(alpha=1.0):
    """Forward the n-th item iff x.mu + alpha q_n sqrt(x Sigma x) >= cost, q_n the normal quantile of 1 - 1/(n + 1).

    After Kaufmann, Cappe and Garivier (2012); the first item, whose quantile would be that of 0, gets the median.
    """
    return Policy("bayes_ucb", weight(alpha))


def phased(alpha=1.0):
    """Phased exploration and greedy exploitation (after Rusmevichientong and Tsitsiklis 2010).

    Phase m forwards every arriving item that is linearly independent of those already explored in the phase,
    until they span all items, and then forwards iff x.mu >= cost for the next alpha m items.  Items cannot be
    chosen here, so the basis is the first that arrives; estimates are posterior means.
    """
    return Policy("phased", weight(alpha))


def rollout(alpha, futures=200):
    """UCB with weight alpha, overruled when the other decision is better by two standard errors over `futures`.

    A future is a user drawn from the belief, items and noise; UCB follows on both branches.

    Raises
    ------
    ValueError
        Unless `futures` is an integer of at least 2.
    """
    if isinstance(futures, bool) or not isinstance(futures, (int, np.integer)) or futures < 2:
        raise ValueError(f"futures is {futures!r}: a standard error needs an integer of at least 2")
    return Policy("rollout", weight(alpha), futures=int(futures))


def make_world(problem, policies, horizon):
    """The kernels' World of a problem."""
    used, k = problem.probs > 0, len(problem.mu)
    count = max([policy.futures for policy in policies], default=0)
    length = int(np.ceil(np.log(REST) / np.log(problem.gamma))) if count else 0
    rng = streams.generator(0, FUTURES)
    return foresight.World(
        problem.items, problem.probs, noise_var(problem), mean_projection(problem), problem.mu, problem.Sigma,
        problem.cost, problem.gamma, int(np.linalg.matrix_rank(problem.items[used])),
        ndtri(1 - 1 / (np.arange(horizon) + 2)), rng.standard_normal((count, k)),
        np.searchsorted(streams.cumulative(problem.probs), rng.random((count, length)), side="right"),
        rng.standard_normal((count, length + 1)))


def make_runner(problem, policies, horizon):
    """A function (stream, rewards, decisions) that lets whole-belief policies meet a stream and fills the arrays.

    Parameters
    ----------
    problem : Problem
    policies : sequence of Policy
        Of the kinds made in this module.
    horizon : int
    """
    world = make_world(problem, policies, horizon)
    kinds = np.array([KINDS[policy.kind] for policy in policies])
    alphas = np.array([policy.alpha for policy in policies])
    futures = np.array([policy.futures for policy in policies])
    return lambda stream, rewards, decisions: foresight.run(world, kinds, alphas, futures, stream, rewards, decisions)
