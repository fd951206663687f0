"""The policies as plain data, and the one registry of what each of them is (paper, sections III-B to IV).

An index policy forwards item x when mean + bonus * sd exceeds the cost, mean = x.mu and sd = sqrt(x Sigma x):

    exploit      0                                           forwards at equality
    ucb          alpha                                       forwards at equality
    thompson     a standard normal, drawn for each item
    dtd_ucb      alpha M(x), M(x) = x.E[X] / x.x, or x Sigma E[X] / x Sigma x
    dtd_dp       alpha E / sd, E the exploration benefit of the single-feature problem in the item's direction

The others look at the whole belief; their kernels are in `lib.policies.lookahead`:

    knowledge_gradient   forwards when what one feedback adds to every later item's value outweighs the loss
    scores               the same lookahead on one number only, the item's own score
    directed             forwards while that lowers squared regret per bit of information
    bayes_ucb            UCB whose bonus is a posterior quantile that rises with time
    phased               explores until the forwards span the items, exploits for a while, explores again
    patient              forwards when that is worth more than waiting for a better item
    rollout              UCB, overruled where simulated futures clearly disagree

A family of policies is one entry of REGISTRY.  `lib.policies.index` compiles its bonus, `lib.figures` draws it with its
mark, `lib.experiments.specs` names it where it takes part.
"""
from typing import Callable, NamedTuple

import numpy as np

from lib import marks
from lib.marks import BLUE, GREEN, ORANGE, PINK, RED, SKY
from lib.policies.projection import LAWS, mean_projection
from lib.problem import as_choice, as_count, as_made, as_scalar

ALPHAS = np.logspace(-1, 1, 10)     # the values over which the paper tunes
NOISES = ("basis", "model")

# What decides: a bonus that is a multiple of the sd, a tabulated one, a normal draw; or a kernel for the whole belief.
INDEX, TABLE, THOMPSON, GRADIENT, SCORES, DIRECTED, QUANTILE, PHASED, ROLLOUT, PATIENT = range(10)


class Policy(NamedTuple):
    """A policy's name and parameters; made by the functions below."""

    kind: str             # a key of REGISTRY
    alpha: float = 0.0    # weight of exploration, nonnegative
    noise: str = "basis"  # of dtd_dp: noise of the current item, "basis" or "model"
    law: str = "euclid"   # of dtd_dp and dtd_ucb: how coming items project on the current one, see LAWS
    futures: int = 0      # of rollout: how many it samples


def exploit():
    """Forward iff x.mu >= cost: no exploration (paper, section IV)."""
    return Policy("exploit")


def ucb(alpha):
    """Forward iff x.mu + alpha sqrt(x Sigma x) >= cost (paper, section IV)."""
    return Policy("ucb", weight(alpha))


def thompson():
    """Forward iff theta.x > cost for theta drawn from the posterior (paper, section IV).

    theta.x is drawn instead of theta: it is N(x.mu, x Sigma x), the same law.
    """
    return Policy("thompson")


def dtd_ucb(alpha, law="euclid"):
    """Forward iff x.mu + alpha M(x) sqrt(x Sigma x) > cost (paper, Algorithm 3); law as `projections`."""
    return Policy("dtd_ucb", weight(alpha), law=as_choice("law", law, LAWS))


def dtd_dp(alpha=1.0, noise="basis", law="euclid"):
    """Forward iff x.mu + alpha E > cost, E the single-feature exploration benefit (paper, Algorithm 2).

    Parameters
    ----------
    alpha : float
        Factor of the exploration benefit, nonnegative.
    noise : {"basis", "model"}
        Noise variance of the single-feature problem: `lib.problem.basis_var`, noise_sd^2 as the paper's change of basis
        implies where noise counts features, or what feedback on the item really has.
    law : str
        The law of the coming magnitudes, as `projections`.
    """
    return Policy("dtd_dp", weight(alpha), as_choice("noise", noise, NOISES), as_choice("law", law, LAWS))


def gittins(alpha=1.0):
    """Forward iff the item's Gittins index exceeds the cost, as if no other item ever came (alpha = 1)."""
    return dtd_dp(alpha, "model", "always")


def clusters(alpha=1.0):
    """Every distinct item its own cluster with its own preference, x.theta (Zhao and Frazier 2014).

    Optimal at alpha = 1 where the clusters' preferences are independent.
    """
    return dtd_dp(alpha, "model", "own")


def weight(alpha):
    """alpha as a nonnegative float, or ValueError."""
    alpha = as_scalar("alpha", alpha)
    if alpha < 0:
        raise ValueError(f"alpha is {alpha}: a weight of exploration is nonnegative")
    return alpha


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


def patient(alpha=0.5):
    """Forward iff x.mu > cost, or a forward of x is worth more than waiting for a better item (not in the paper).

    Both worths are closed forms, in which later arrivals teach at alpha times the rate at which users should get them:
    `lib.policies.patience`.  At 1 it can lose where nothing is worth a forward, because what is learned later then seems free;
    at 0 it does not.

    Examples
    --------
    >>> patient().alpha
    0.5
    """
    return Policy("patient", weight(alpha))


def rollout(alpha, futures=200):
    """UCB with weight alpha, overruled when the other decision is better by two standard errors over `futures`.

    A future is a user drawn from the belief, items and noise; UCB follows on both branches.

    Raises
    ------
    ValueError
        Unless `futures` is an integer of at least 2.
    """
    return Policy("rollout", weight(alpha), futures=as_count("futures", futures, 2))


def no_bonus(problem, policy):
    """(n,) zeros: exploitation."""
    return np.zeros(len(problem.items))


def even_bonus(problem, policy):
    """(n,) alpha for every item: UCB, and the factor of DTD-DP's tabulated benefit."""
    return np.full(len(problem.items), policy.alpha)


def projected_bonus(problem, policy):
    """(n,) alpha M(x): DTD-UCB."""
    return policy.alpha * mean_projection(problem, policy.law)


def dtd_name(policy):
    """The name of a DTD policy, its noise and its law of projection."""
    name, special = REGISTRY[policy.kind].name, {"always": "Gittins, x = 1", "own": "Hard clusters"}
    if policy.kind == "dtd_dp" and policy.noise == "model":
        name = special.get(policy.law, name + ", noise of the model")
    return name if policy.law == "euclid" or name in special.values() else f"{name}, law {policy.law}"


class Family(NamedTuple):
    """All that is known of a kind of policy, in one place."""

    kind: str                               # as in Policy
    name: str                               # for tables and legends
    make: Callable                          # from alpha to a Policy, or from nothing where it has no alpha
    rule: int                               # what decides: INDEX, TABLE, ... above
    ties: bool = False                      # whether an index policy forwards at equality
    bonus: Callable = no_bonus              # of an index policy: (problem, policy) to (n,) multiples of the sd
    tuned: tuple = tuple(map(float, ALPHAS))                   # values of alpha that experiments try; empty: it has none
    marks: tuple = ()                       # ((name, colour, marker), ...) of it and of its variants
    named: Callable = None                  # from a policy to its name, where that depends on more than the kind


REGISTRY = {}


def register(family):
    """Add a Family: from here on it is known to the simulation, to pictures, experiments and reports.

    Raises
    ------
    ValueError
        When its kind or its name is taken, or its mark is another's.
    """
    as_made("family", family, Family, "lib.policies.Family")
    for other in REGISTRY.values():
        if family.kind == other.kind or family.name == other.name:
            raise ValueError(f"{family.kind}: there is a policy {other.kind} called {other.name}")
    for mark in family.marks:
        marks.register(*mark)
    REGISTRY[family.kind] = family


for _family in (
        Family("exploit", "Exploitation", exploit, INDEX, True, tuned=(), marks=(("Exploitation", PINK, "v"),)),
        Family("thompson", "Thompson sampling", thompson, THOMPSON, tuned=(), marks=(("Thompson sampling", GREEN, "D"),)),
        Family("ucb", "UCB", ucb, INDEX, True, even_bonus, marks=(("UCB", ORANGE, "^"),)),
        Family("dtd_ucb", "DTD-UCB", dtd_ucb, INDEX, False, projected_bonus, marks=(("DTD-UCB", RED, "s"),), named=dtd_name),
        Family("dtd_dp", "DTD-DP", dtd_dp, TABLE, False, even_bonus, named=dtd_name,
               marks=(("DTD-DP", BLUE, "o"), ("DTD-DP, noise of the model", BLUE, "*"))),
        Family("knowledge_gradient", "Knowledge gradient", knowledge_gradient, GRADIENT,
               marks=(("Knowledge gradient", SKY, "P"),)),
        Family("scores", "Lookahead on scores", scores, SCORES),
        Family("directed", "Information-directed", information_directed, DIRECTED),
        Family("bayes_ucb", "Bayes-UCB", bayes_ucb, QUANTILE),
        Family("phased", "Phased exploration", phased, PHASED),
        Family("patient", "Patient lookahead", patient, PATIENT),
        Family("rollout", "Rollout", rollout, ROLLOUT, named=lambda policy: f"Rollout of {policy.futures}")):
    register(_family)


def entry(policy, name="policies"):
    """The Family of a policy; errors call the argument that holds it `name`.

    Raises
    ------
    ValueError
        When it is not a Policy, of no registered kind, or a parameter is out of range.
    """
    if not isinstance(policy, Policy) or policy.kind not in REGISTRY:
        raise ValueError(f"{name} holds {policy!r}: every policy must be made by the functions of lib.policies")
    weight(policy.alpha)
    as_choice("noise", policy.noise, NOISES)
    as_choice("law", policy.law, LAWS)
    if REGISTRY[policy.kind].rule == ROLLOUT:
        as_count("futures", policy.futures, 2)
    return REGISTRY[policy.kind]


def as_policies(name, policies):
    """`policies` as a list of at least one, or ValueError."""
    try:
        found = list(policies)
    except TypeError as error:
        raise ValueError(f"{name} is {policies!r}: it must be a sequence of policies") from error
    if not found:
        raise ValueError(f"{name} is empty: give at least one")
    for policy in found:
        entry(policy, name)
    return found


def family_name(policy):
    """A policy's name without its alpha: what tables call it and pictures draw it as.

    Examples
    --------
    >>> family_name(ucb(.5)), family_name(dtd_dp(2, "model"))
    ('UCB', 'DTD-DP, noise of the model')
    """
    family = entry(policy)
    return family.named(policy) if family.named else family.name


def label(policy):
    """A policy's name for tables and legends.

    Examples
    --------
    >>> label(ucb(.5))
    'UCB, alpha = 0.5'
    """
    return family_name(policy) + (f", alpha = {policy.alpha:.4g}" if is_tuned(policy) else "")


def is_tuned(policy):
    """Whether a policy has an alpha."""
    return bool(entry(policy).tuned)


def grid(kinds):
    """The policies of some families over every alpha that each is tuned over: a tuple.

    Examples
    --------
    >>> len(grid(("exploit", "ucb")))
    11
    """
    try:
        kinds = [as_choice("kinds", kind, tuple(REGISTRY)) for kind in kinds]
    except TypeError as error:
        raise ValueError(f"kinds is {kinds!r}: it must be a sequence of kinds") from error
    return tuple(policy for kind in kinds for policy in
                 ([REGISTRY[kind].make(alpha) for alpha in REGISTRY[kind].tuned] or [REGISTRY[kind].make()]))


def find(policies, name, alpha):
    """The first of `policies` that a table's row means, by the name of its family and its alpha (NaN: it has none).

    Raises
    ------
    ValueError
        When there is none.

    Examples
    --------
    >>> find([exploit(), ucb(.1), ucb(.2154435)], "UCB", .2154435).alpha
    0.2154435
    """
    if not isinstance(alpha, (int, float, np.number)):
        raise ValueError(f"alpha is {alpha!r}: it must be a number, or nan")
    for policy in as_policies("policies", policies):
        if family_name(policy) == name and (np.isnan(alpha) or np.isclose(policy.alpha, alpha)):
            return policy
    raise ValueError(f"name {name!r} with alpha {alpha}: there is no such policy")
