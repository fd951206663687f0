"""The oracle: the book's mathematics in plain loops, slow and independent.  It imports nothing of lib."""
import decimal
import math

# --- beliefs and policies ---------------------------------------------------------------------------


def inner(x, y):
    """x.y"""
    return sum(a * b for a, b in zip(x, y))


def times(Sigma, x):
    """Sigma x"""
    return [inner(row, x) for row in Sigma]


def update(mu, Sigma, x, y, noise_var):
    """The belief after feedback y on item x, element by element."""
    gain = times(Sigma, x)
    total = inner(x, gain) + noise_var
    if total == 0:
        return mu, Sigma
    k = len(mu)
    new_mu = [mu[i] + gain[i] * (y - inner(x, mu)) / total for i in range(k)]
    new_Sigma = [[Sigma[i][j] - gain[i] * gain[j] / total for j in range(k)] for i in range(k)]
    return new_mu, new_Sigma


def factor(problem, i):
    """Noise variance of item i in units of noise_sd^2, by the law of the problem's noise."""
    law = getattr(problem, "noise", "features")
    if not isinstance(law, str):
        return float(law[i])
    return {"features": sum(a != 0 for a in problem.items[i]), "constant": 1}[law]


def noises(problem):
    """Noise variance of each item."""
    return [problem.noise_sd**2 * factor(problem, i) for i in range(len(problem.items))]


def mean_projection(items, probs, x):
    """M(x) = sum over items of probability times (x.X)^+ / x.x, one item at a time."""
    if inner(x, x) == 0:
        return 0.0
    return sum(p * max(inner(x, X), 0.0) / inner(x, x) for X, p in zip(items, probs))


class Seen:
    """What an index policy knows of the item that has arrived: its feedback is N(mean, sd^2), and so on."""

    def __init__(self, mean, var, cost, prob=0.0, projection=0.0, z=0.0, benefit=0.0):
        self.mean, self.sd, self.cost, self.prob = mean, math.sqrt(max(var, 0.0)), cost, prob
        self.projection, self.z, self.benefit = projection, z, benefit


RULES = {       # does the policy forward?  One line for each index policy: (alpha, Seen) to yes or no.
    "exploit": lambda alpha, seen: seen.mean >= seen.cost,
    "ucb": lambda alpha, seen: seen.mean + alpha * seen.sd >= seen.cost,
    "thompson": lambda alpha, seen: seen.mean + seen.z * seen.sd > seen.cost,
    "dtd_ucb": lambda alpha, seen: seen.mean + alpha * seen.projection * seen.sd > seen.cost,
    "dtd_dp": lambda alpha, seen: seen.mean + alpha * seen.benefit > seen.cost,
}


def wanted(kind, alpha, mean, var, cost, projection=0.0, z=0.0, benefit=0.0, prob=0.0):
    """Does a policy forward an item whose expected feedback is N(mean, var)?  `benefit` is exploration's."""
    return RULES[kind](alpha, Seen(mean, var, cost, prob, projection, z, benefit))


def pick(probs, u):
    """The first item whose cumulative probability exceeds u."""
    total = 0.0
    for i, p in enumerate(probs):
        total += p
        if u < total:
            return i
    return max(i for i, p in enumerate(probs) if p > 0)


def episode(problem, kind, alpha, theta, uniforms, noise, thompson, benefit=None, truth=None):
    """One user, one policy: (items, feedback, decisions, reward, realised reward).

    `problem` has the fields items, probs, mu, Sigma, noise_sd, cost, gamma and noise; `benefit(i, net_mean, var)` is
    the exploration benefit that dtd_dp sees in item i.  Items, feedback and rewards come from `truth` where
    that is not what the policy believes.
    """
    truth = truth or problem
    items = [list(map(float, x)) for x in problem.items]
    probs = list(map(float, problem.probs))
    mu, Sigma = list(map(float, problem.mu)), [list(map(float, row)) for row in problem.Sigma]
    seen, feedback, decisions, reward, realised = [], [], [], 0.0, 0.0
    for n in range(len(uniforms)):
        i = pick(list(map(float, truth.probs)), uniforms[n])
        x, real = items[i], list(map(float, truth.items[i]))
        noise_var, worth = noises(problem)[i], inner(real, theta)
        y = worth + math.sqrt(noises(truth)[i]) * noise[n]
        mean, var = inner(x, mu), inner(x, times(Sigma, x))
        forward = wanted(kind, alpha, mean, var, problem.cost, mean_projection(items, probs, x), thompson[n],
                         benefit(i, mean - problem.cost, var) if benefit else 0.0, probs[i])
        if forward:
            reward += problem.gamma ** (n + 1) * (worth - problem.cost)
            realised += problem.gamma ** (n + 1) * (y - problem.cost)
            mu, Sigma = update(mu, Sigma, x, y, noise_var)
        seen.append(i)
        feedback.append(y)
        decisions.append(forward)
    return seen, feedback, decisions, reward, realised


def precise_episode(problem, kind, alpha, theta, indices, noise, thompson):
    """Decisions and reward on given items with 80 digits, for index policies without a table."""
    with decimal.localcontext(prec=80):
        D = decimal.Decimal
        items, theta = [[D(float(a)) for a in x] for x in problem.items], [D(float(a)) for a in theta]
        probs, cost, gamma = [D(float(p)) for p in problem.probs], D(float(problem.cost)), D(float(problem.gamma))
        mu, Sigma = [D(float(m)) for m in problem.mu], [[D(float(s)) for s in row] for row in problem.Sigma]
        decisions, reward = [], D(0)
        for n, i in enumerate(indices):
            x, worth = items[i], inner(items[i], theta)
            noise_var = D(problem.noise_sd) ** 2 * factor(problem, i)
            mean, sd = inner(x, mu), max(inner(x, times(Sigma, x)), D(0)).sqrt()
            bonus = {"exploit": D(0), "ucb": D(alpha), "thompson": D(float(thompson[n])),
                     "dtd_ucb": D(alpha) * sum(p * max(inner(x, X), D(0)) for X, p in zip(items, probs)) / (inner(x, x) or 1)}[kind]
            decisions.append(mean + bonus * sd >= cost)
            if decisions[-1]:
                reward += gamma ** (n + 1) * (worth - cost)
                mu, Sigma = update(mu, Sigma, x, worth + noise_var.sqrt() * D(float(noise[n])), noise_var)
        return decisions, float(reward)


# --- policies that look at the whole belief ----------------------------------------------------------


def phi(z):
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def Phi(z):
    return math.erfc(-z / math.sqrt(2)) / 2


def variance(Sigma, x):
    return max(inner(x, times(Sigma, x)), 0.0)


def expected_gain(net, sd):
    """E (net + sd Z)^+ - net^+ in the textbook's two terms."""
    return sd * phi(net / sd) + net * Phi(net / sd) - max(net, 0.0) if sd > 0 else 0.0


def knowledge_gradient(problem, mu, Sigma, i):
    """gamma/(1-gamma) E over items X' of the gain of one feedback on item i."""
    total, x = 0.0, problem.items[i]
    spread = variance(Sigma, x) + noises(problem)[i]
    for X, p in zip(problem.items, problem.probs):
        if spread > 0:
            total += p * expected_gain(inner(X, mu) - problem.cost, abs(inner(X, times(Sigma, x))) / math.sqrt(spread))
    return problem.gamma / (1 - problem.gamma) * total


def score_gradient(problem, mu, Sigma, i):
    """The same for coming items that are multiples of item i and cost that multiple."""
    x, var, total = problem.items[i], variance(Sigma, problem.items[i]), 0.0
    if var == 0:
        return 0.0
    for X, p in zip(problem.items, problem.probs):
        size = inner(x, X) / inner(x, x)
        total += p * expected_gain(size * (inner(x, mu) - problem.cost), size * var / math.sqrt(var + noises(problem)[i]))
    return problem.gamma / (1 - problem.gamma) * total


def directed_set(problem, mu, Sigma, alpha):
    """Information-directed sampling: the items it forwards, found by trying every prefix of the order."""
    n = len(problem.items)
    loss = [problem.cost - inner(x, mu) for x in problem.items]
    var = [variance(Sigma, x) for x in problem.items]
    info = [math.log1p(v / s) / 2 if v > 0 else 0.0 for v, s in zip(var, noises(problem))]
    taken = [i for i in range(n) if loss[i] <= 0]
    for i in sorted((i for i in range(n) if loss[i] > 0 and info[i] > 0), key=lambda i: loss[i] / info[i]):
        regret = sum(p * (expected_gain(-loss[j], math.sqrt(var[j])) + max(-loss[j], 0) + (loss[j] if j in taken else 0))
                     for j, p in enumerate(problem.probs))
        learned = sum(problem.probs[j] * info[j] for j in taken)
        if not 2 * learned * loss[i] < alpha * regret * info[i]:
            break
        taken.append(i)
    return taken


def solved(A, B):
    """A^-1 B by elimination."""
    n, rows = len(A), [[*map(float, a), *map(float, b)] for a, b in zip(A, B)]
    for c in range(n):
        p = max(range(c, n), key=lambda r: abs(rows[r][c]))
        rows[c], rows[p] = rows[p], rows[c]
        rows[c] = [v / rows[c][c] for v in rows[c]]
        for r in range(n):
            if r != c:
                rows[r] = [v - rows[r][c] * w for v, w in zip(rows[r], rows[c])]
    return [row[n:] for row in rows]


def patient_worths(problem, mu, Sigma, alpha, blocks):
    """A_x of every item and what waiting is worth, for blocks of arrivals (how many came before, discount)."""
    items, k, noise = [list(map(float, x)) for x in problem.items], len(mu), noises(problem)
    nets, var = [inner(x, mu) - problem.cost for x in items], [variance(Sigma, x) for x in items]
    share = [Phi(net / math.sqrt(v)) if v > 0 else float(net > 0) for net, v in zip(nets, var)]
    G = [[sum(alpha * p * q * x[a] * x[b] / s for x, p, q, s in zip(items, problem.probs, share, noise) if s > 0)
          for b in range(k)] for a in range(k)]
    worths = nets[:]
    for m, weight in blocks:
        A = [[(a == b) + m * sum(Sigma[a][c] * G[c][b] for c in range(k)) for b in range(k)] for a in range(k)]
        S = solved(A, Sigma)
        for i, x in enumerate(items):
            spread = variance(S, x) + noise[i]
            for X, p, net, v in zip(items, problem.probs, nets, var):
                told = max(v - variance(S, X), 0.0) + (inner(X, times(S, x))**2 / spread if spread > 0 else 0.0)
                worths[i] += weight * p * (max(net, 0.0) + expected_gain(net, math.sqrt(told)))
    wait = 0.0
    for _ in range(2000):
        wait = problem.gamma * sum(p * max(wait, a) for p, a in zip(problem.probs, worths))
    return worths, wait


def rank(rows):
    """Rank by elimination."""
    rows, found = [list(map(float, row)) for row in rows], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = max(range(found, len(rows)), key=lambda r: abs(rows[r][column]), default=None)
        if pivot is None or abs(rows[pivot][column]) < 1e-6:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for r in range(found + 1, len(rows)):
            factor = rows[r][column] / rows[found][column]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[found])]
        found += 1
    return found


def phased_decisions(problem, alpha, indices, feedback):
    """Phased exploration: the decisions on a stream of items."""
    mu, Sigma, out = list(problem.mu), [list(row) for row in problem.Sigma], []
    full, phase, explored, left = rank([x for x, p in zip(problem.items, problem.probs) if p > 0]), 1, [], None
    for i, y in zip(indices, feedback):
        x = problem.items[i]
        go = inner(x, mu) >= problem.cost
        if left is None:
            if rank([*explored, x]) > rank(explored):
                go = True
                explored.append(x)
            if len(explored) == full:
                left = math.ceil(alpha * phase)
        else:
            left -= 1
        if left is not None and left <= 0:
            phase, explored, left = phase + 1, [], None
        out.append(go)
        if go:
            mu, Sigma = update(mu, Sigma, x, y, noises(problem)[i])
    return out


def cholesky(Sigma):
    k = len(Sigma)
    L = [[0.0] * k for _ in range(k)]
    for a in range(k):
        for b in range(a + 1):
            rest = Sigma[a][b] - sum(L[a][c] * L[b][c] for c in range(b))
            L[a][b] = math.sqrt(rest) if a == b else rest / L[b][b]
    return L


def rollout_decision(problem, mu, Sigma, i, alpha, users, coming, noise):
    """UCB overruled where the mean difference of two branches over futures exceeds two standard errors."""
    def optimistic(mu, Sigma, x):
        return inner(x, mu) + alpha * math.sqrt(variance(Sigma, x)) >= problem.cost

    def life(mu, Sigma, theta, f):
        reward = 0.0
        for m, j in enumerate(coming[f]):
            x = problem.items[j]
            if optimistic(mu, Sigma, x):
                reward += problem.gamma ** (m + 1) * (inner(x, theta) - problem.cost)
                y = inner(x, theta) + math.sqrt(noises(problem)[j]) * noise[f][m + 1]
                mu, Sigma = update(mu, Sigma, x, y, noises(problem)[j])
        return reward

    x, L, apart = problem.items[i], cholesky(Sigma), []
    for f, z in enumerate(users):
        theta = [m + inner(row, z) for m, row in zip(mu, L)]
        y = inner(x, theta) + math.sqrt(noises(problem)[i]) * noise[f][0]
        forward = inner(x, theta) - problem.cost + life(*update(mu, Sigma, x, y, noises(problem)[i]), theta, f)
        apart.append(forward - life(mu, Sigma, theta, f))
    mean = sum(apart) / len(apart)
    error = math.sqrt(sum((a - mean) ** 2 for a in apart) / len(apart) / (len(apart) - 1))
    return mean >= -2 * error if optimistic(mu, Sigma, x) else mean > 2 * error


def belief_decisions(problem, decide, indices, feedback):
    """Decisions of `decide(mu, Sigma, i, n)` on a stream of items."""
    mu, Sigma, out = list(problem.mu), [list(row) for row in problem.Sigma], []
    for n, (i, y) in enumerate(zip(indices, feedback)):
        out.append(decide(mu, Sigma, i, n))
        if out[-1]:
            mu, Sigma = update(mu, Sigma, problem.items[i], y, noises(problem)[i])
    return out


# --- the single-feature dynamic program ---------------------------------------------------------------


def bell(z):
    """Density of the standard normal."""
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def single_feature(x, probs, gamma, m, b, depth, reach=6.0, step=.05, nodes=81):
    """Value before x is seen, noise 1, by recursion on a grid of means; after `depth` forwards, commitment."""
    slope = sum(p * size for p, size in zip(probs, x)) / (1 - gamma)
    grid = [i * step - reach for i in range(int(2 * reach / step) + 1)]
    z = [-6 + 12 * i / (nodes - 1) for i in range(nodes)]
    weight = [bell(a) for a in z]
    known = {}

    def at(values, mean):
        i = math.floor((mean + reach) / step)
        if i < 0:
            return 0.0
        if i >= len(grid) - 1:
            return slope * mean
        part = (mean - grid[i]) / step
        return values[i] * (1 - part) + values[i + 1] * part

    def solve(prec, left):
        key = round(prec, 9), left
        if left == 0:
            return [slope * max(mean, 0) for mean in grid]
        if key not in known:
            later = [solve(prec + size * size, left - 1) if size else None for size in x]
            values = []
            for mean in grid:
                forward = []
                for size, after in zip(x, later):
                    t = math.sqrt(1 / prec - 1 / (prec + size * size))
                    ahead = sum(w * at(after, mean + t * a) for w, a in zip(weight, z)) / sum(weight) if size else None
                    forward.append(size * mean + gamma * ahead if size else -math.inf)
                value = 0.0
                for _ in range(200):
                    value = sum(p * max(gamma * value, f) for p, f in zip(probs, forward))
                values.append(value)
            known[key] = values
        return known[key]

    return at(solve(b, depth), m)


def upper_sweep(grid, gamma):
    """The upper sweep for x = 1 always, by exactly rounded sums: D on the first level of a lattice b0, b0 + 1, ..."""
    K, above = 1 / (1 - gamma), None
    last = len(grid.levels) - 1
    for j in range(last, -1, -1):
        first, count, start, d = grid.first[0, j], grid.first[1, j], grid.ptr[j], grid.spacing[j]
        if j == last:
            above = {first + i: grid.D[start + i] for i in range(count)}
            fine = d
            continue
        t, ratio, values = math.sqrt(1 / grid.levels[j] - 1 / grid.levels[j + 1]), round(d / fine), {}
        h = fine / t

        def call(z):
            return bell(z) - z * math.erfc(z / math.sqrt(2)) / 2

        hats = [(call(l * h - h) - 2 * call(l * h) + call(l * h + h)) / h for l in range(int(8.5 / h) + 2)]
        for i in range(first, first + count):
            m, near = i * d, range(i * ratio - len(hats) + 1, i * ratio + len(hats))
            ahead = math.fsum(hats[abs(l - i * ratio)] * above[l] for l in near if l in above)
            forward = math.fsum((m, gamma * K * (max(m, 0) + t * call(abs(m) / t)), gamma * ahead))
            values[i] = max(0.0, forward) - K * max(m, 0)
        above, fine = values, d
    return [above[i] for i in sorted(above)]


def general_feature(x, charge, probs, info, gamma, m, b, units, reach=6.0, step=.05, nodes=61):
    """Value of a feature with charges, noise 1, informations 0, 1, 2, ...: on a grid of means from b + units, commitment, down."""
    grid = [i * step - reach for i in range(round(2 * reach / step) + 1)]
    z = [-6 + 12 * i / (nodes - 1) for i in range(nodes)]
    weight = [bell(a) for a in z]

    def commit(mean):
        return sum(p * max(size * mean - paid, 0) for p, size, paid in zip(probs, x, charge)) / (1 - gamma)

    def at(values, mean):
        i = math.floor((mean + reach) / step)
        if i < 0 or i >= len(grid) - 1:
            return commit(mean)
        part = (mean - grid[i]) / step
        return values[i] * (1 - part) + values[i + 1] * part

    def ahead(values, mean, prec, more):
        t = math.sqrt(1 / prec - 1 / (prec + more))
        return sum(w * at(values, mean + t * a) for w, a in zip(weight, z)) / sum(weight)

    levels = {}
    for level in range(units, -1, -1):
        levels[level] = []
        for mean in grid:
            after = {q: commit(mean) if level + q > units else ahead(levels[level + q], mean, b + level, q) for q in set(info) - {0}}
            value = commit(mean)
            for _ in range(60):
                value = gamma * value * (1 - sum(probs)) + sum(
                    p * max(gamma * value, size * mean - paid + gamma * after.get(q, value))
                    for p, size, paid, q in zip(probs, x, charge, info))
            levels[level].append(value)
    return at(levels[0], m)
