"""First forwards made exact, with limits that rest on no normality.

V = max_F T_F over sets F of items, T_F the w at which S_F(w) = (1 - gamma) w - gamma sum_F p_x (A_x - w) is zero, A_x = r_x + E_y V(s'_xy).
A set that attains it holds every item with r_x = x.mu - cost >= 0, because E_y V(s'_xy) >= V.  Row i of a sample has

    s_i(F, w) = (1 - gamma) w - gamma sum_F p_x (r_x + FO + VOI_xi - C_xi - w),

VOI_xi on a sequence of arrivals of its own, and C_xi the least charges along one path after a first forward of an item that is drawn too,
over its chance, and 0 for the others.  FO stands for an upper limit of it, from another sample; where that holds, E s_i(F, w) <= S_F(w).

Proof of the limit.  Let F* attain V.  It does not depend on the sample, and S_F*(V) = 0.  So the capital prod_i (1 + stake s_i(F*, V)) of a
gambler has mean 1 at most, and is 1 / share or more with probability `share` at most (Markov), if it cannot become negative.  It rises
with w.  So a trial w at which the capital is that much *whatever* the set is no smaller than V, with confidence 1 - share.  No correction
for many sets is needed, and none for the search over w.  Charges are nonnegative: they need no cut.  What a row may lose at most is bounded by
`most_taught`, and by w >= start, where the search starts: a limit of no less than `start` is one wherever V <= start.  It, the stake and the
chances are chosen on other draws.

What it costs.  The worst set of a sample has the items whose charges it happens to have missed: with few paths for each item that may or may
not be forwarded the limit is as high as without charges.

The best item.  V <= gamma max(A_x, 0) for the item of the largest A_x, which does not depend on the sample either: the largest of the
limits of all A_x is one for it.  This is what shows that V = 0.
"""
import numpy as np

from lib import streams
from lib.bound import relaxations
from lib.bound.duality import EVERY, Bound, commitment
from lib.bound.penalty import arrivals, arrivals_of_first, least_charges, values_of_information
from lib.bound.relaxations import compile_checked
from lib.dp import first_forward
from lib.estimate import STAKE, betting_limit, sample_mean
from lib.normal import PHI0
from lib.posterior import variances
from lib.problem import as_count, checked, noise_var

FULL_SHARE, BEST_SHARE, SETS_SHARE = .01, .01, .03      # of a limit's 5 %: full observation, the best item, sets of items
PILOT, START = 4, .9                                    # one path of so many is spent on choices; where the search starts, of its estimate
BISECTIONS = 24                                         # of a trial w: the limit errs upward by what they leave
SPLITS, FEW = 6, 12                                     # items that are tried in a set and out of it, within one another, where so many are left


def most_taught(problem):
    """(n,) what no VOI_x is worth on any sequence of items.

    Let feedback on x lower the variance of what is not known of z.theta by d when z arrives, of variance v before anything was seen.
    E (r + s Z)^+ has the slope phi(r / s) in s, so it rises by sqrt(d) phi(r_z / sqrt v) at most, r_z = z.mu - cost.

    Each time: d <= rho v by Cauchy and Schwarz, rho the share of feedback on x that is not noise.
    In all: what the feedback on z, of noise variance q, and on x say of each other beyond what was seen before is
    log(1 / (1 - u)) / 2 >= u / 2 with u = d / (variance of z.theta then + q) >= d / (v + q).  By the chain rule these add up to at most what
    feedback on x says of theta, log(1 / (1 - rho)) / 2.  So sum_n gamma^n sqrt(u_n) <= sqrt(sum gamma^2n) sqrt(log(1 / (1 - rho))).

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1.0]], [1.0], [0.0], [[1.0]], 1.0, .3, .5)
    >>> most_taught(problem)[0] > values_of_information(compile_checked(problem), np.zeros((1, 1, 50), int))[0, 1]
    np.True_
    """
    variance, noise, gamma, met = variances(problem.items, problem.Sigma), noise_var(problem), problem.gamma, problem.probs > 0
    net, sd = problem.items @ problem.mu - problem.cost, np.sqrt(variance)
    density = PHI0 * np.exp(-.5 * (net / np.maximum(sd, np.abs(net) / 40 + 1e-300))**2)        # beyond 40 deviations, from above
    ratio = variance / np.maximum(noise, 1e-300)                        # an item without features has neither
    each = gamma / (1 - gamma) * np.sqrt(ratio / (1 + ratio)) * (sd * density)[met].max()
    whole = gamma / np.sqrt(1 - gamma**2) * np.sqrt(np.log1p(ratio)) * (np.sqrt(variance + noise) * density)[met].max()
    return (1 + 1e-9) * np.minimum(each, whole)


def least_capital(base, gains, stake, splits=SPLITS):
    """The log of the least capital prod_i (1 + stake (base_i - sum_F gains_i)) of any set F of items, from below.

    An item whose entry lowers, or raises, the capital whatever the others do is in F, or is not; this narrows what the rows
    can be, and is repeated.  Where it settles no more, and FEW are left, the item that moves the rows most is tried in F and out of it, so many
    times within one another; what is left otherwise is taken row by row.

    Parameters
    ----------
    base : float or ndarray (R,)
    gains : ndarray (R, n)
        What an item takes from a row.
    stake : float
        Positive; stake times what a row can lose is below 1.
    splits : int

    Returns
    -------
    float
        At most the least.
    """
    rows = np.broadcast_to(base, len(gains))
    while gains.shape[1]:
        up, down = np.maximum(gains, 0), np.maximum(-gains, 0)
        low = 1 + stake * (rows - up.sum(axis=1))[:, None]
        high = 1 + stake * (rows + down.sum(axis=1))[:, None]
        least, most = low + stake * up, high - stake * down             # of a row, the item left out
        enters = np.log1p(-stake * gains / np.where(gains > 0, most, least)).sum(axis=0) < 0       # its effect, from above
        stays = np.log1p(-stake * gains / np.where(gains > 0, least, most)).sum(axis=0) >= 0       # from below
        if not (enters | stays).any() and splits and len(enters) <= FEW:
            x = int(np.abs(gains).sum(axis=0).argmax())
            rest = np.delete(gains, x, axis=1)
            return min(least_capital(rows - taken, rest, stake, splits - 1) for taken in (gains[:, x], 0.0))
        if not (enters | stays).any():
            return float(np.log(low).sum())
        rows, gains = rows - gains[:, enters].sum(axis=1), gains[:, ~(enters | stays)]
    return float(np.log1p(stake * rows).sum())


def draw(problem, chances, paths, inner, effort, seed):
    """(R, n) VOI_x, each row on a sequence of its own; (R, n) charges after a first forward of an item drawn by `chances`, over its chance."""
    ahead = arrivals(problem, (paths, 1, arrivals_of_first(problem)), streams.generator(seed, streams.Purpose.SEQUENCES))
    taught = values_of_information(compile_checked(problem), ahead)[:, 1:]
    chosen = streams.draw_items(chances, streams.generator(seed, streams.Purpose.ITEMS).random(paths))
    charges = np.zeros(taught.shape)
    charges[np.arange(paths), chosen] = least_charges(problem, chosen, inner, effort, seed) / chances[chosen]
    return taught, charges


def _chances(problem, hopeful):
    """(n,) chances in proportion to the probabilities of the items that are `hopeful`, or of all where none is."""
    share = problem.probs * (hopeful if (hopeful & (problem.probs > 0)).any() else True)
    return share / share.sum()


def _pilot(problem, paths, inner, effort, seed):
    """Chances of items, and for each of the two bounds where a search starts, and the variance of a row of the set that looks best."""
    net, gamma = problem.items @ problem.mu - problem.cost, problem.gamma
    full = relaxations.full_observation(problem, 10 * paths, seed, arrivals_of_first(problem)).mean
    chances = _chances(problem, net + full > commitment(problem))
    taught, charges = draw(problem, chances, paths, inner, effort, seed)
    known, mean = net + full + taught.mean(axis=0), (charges @ chances).mean()          # of charges, alike for all items
    bets = []
    for less, taken in (0.0, 0.0), (mean, charges):
        w = first_forward(known - less, problem.probs, gamma)[0]
        entered = (taught - taken) @ (gamma * problem.probs * (known - less > w))
        bets.append((max(commitment(problem), START * w), entered.var(ddof=1)))
    return _chances(problem, known > w), bets


def sets_limit(problem, full, values, most, start, variance):
    """An upper limit of V, at most `full`, by betting on rows `values` (R, n) of A_x - FO, which `most` (n,) bounds."""
    gamma, sure = problem.gamma, problem.items @ problem.mu >= problem.cost
    lost = gamma * problem.probs @ np.maximum(most + full - start, 0) - (1 - gamma) * start
    aim = -np.log(SETS_SHARE)
    if not (lost > 0 and full > start):
        return min(start, full)
    stake = min(np.sqrt(2 * aim / max(len(values) * variance, 1e-300)), STAKE / lost)
    low, high = start, full
    for _ in range(BISECTIONS):
        w = (low + high) / 2
        gains = gamma * problem.probs * (values + full - w)
        won = least_capital((1 - gamma) * w - gains[:, sure].sum(axis=1), gains[:, ~sure], stake) >= aim
        low, high = (low, w) if won else (w, high)
    return high


def best_item_limit(problem, full, taught, most):
    """An upper limit of V by that of the best item, with full observation after it."""
    met = problem.probs > 0
    limits = [betting_limit(column, top, 1 - BEST_SHARE) if top > 0 else 0.0 for column, top in zip(taught.T[met], most[met])]
    return problem.gamma * max(float((problem.items[met] @ problem.mu - problem.cost + full + limits).max()), 0.0)


def finite_sample_first(problem, paths=1000, inner=4, effort=2000, seed=0):
    """`full_first` and `dual_first` with limits that rest on no normality: the head of this module has the proof.

    A quarter more of `paths` is spent on the choice of the stake and of the items that charges are sampled of, which the limits'
    validity does not depend on.

    Parameters
    ----------
    problem : Problem
        Of at most EVERY (1024) distinct items.
    paths : int
        Sequences of arrivals and paths, several times as many as items that may be worth a first forward; full observation takes ten
        times as many sequences.
    inner, effort, seed
        As `least_charges` takes them.

    Returns
    -------
    Bound, Bound
        "first forward exact" and "first forward exact, then dual".

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong, or for more items.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> first, after = finite_sample_first(make_problem([[1.0]], [1.0], [0.0], [[1.0]], 1.0, .3, .9), 200)
    >>> after.mean < first.mean < first.upper
    True
    """
    problem, paths, inner, effort = checked(problem), as_count("paths", paths, 2), as_count("inner", inner), as_count("effort", effort)
    if len(problem.probs) > EVERY:
        raise ValueError(f"problem has {len(problem.probs)} items: at most {EVERY} can be looked at each")
    streams.generator(seed)
    seed = streams.numbers(seed)
    chances, bets = _pilot(problem, max(paths // PILOT, 4), inner, effort, (*seed, 0))
    horizon, net = arrivals_of_first(problem), problem.items @ problem.mu - problem.cost
    observed, most = relaxations.observed_values(problem, 10 * paths, (*seed, 1), horizon), relaxations.most_observed(problem, horizon)
    full = betting_limit(observed, most, 1 - FULL_SHARE) if most > 0 else 0.0
    taught, charges = draw(problem, chances, paths, inner, effort, (*seed, 1))
    top, out = most_taught(problem), []
    alone = best_item_limit(problem, full, taught, top)
    for name, taken, bet in zip(("first forward exact", "first forward exact, then dual"), (0.0, charges), bets):
        upper = min(alone, full, sets_limit(problem, full, net + taught - taken, net + top, *bet))
        out.append(_estimate(name, problem, observed, net + taught, taken, upper))
    return tuple(out)


def _estimate(name, problem, observed, known, charges, upper):
    """The Bound of that limit: T of the mean A_x, and its error for the set that looks best."""
    full = sample_mean(observed)
    value, slope = first_forward(full.mean + (known - charges).mean(axis=0), problem.probs, problem.gamma)
    se = np.hypot(sample_mean((known - charges) @ slope).se, slope.sum() * full.se)
    return Bound(name, min(float(value), upper), float(se), float(upper))
