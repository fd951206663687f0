"""The oracle: the book's mathematics in plain loops, slow and independent.  It imports nothing of lib."""
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


def mean_projection(items, probs, x):
    """M(x) = sum over items of probability times x.X / x.x, one item at a time."""
    if inner(x, x) == 0:
        return 0.0
    return sum(p * inner(x, X) / inner(x, x) for X, p in zip(items, probs))


def wanted(kind, alpha, mean, var, cost, projection=0.0, z=0.0, benefit=0.0):
    """Does a policy forward an item whose expected feedback is N(mean, var)?  `benefit` is exploration's."""
    sd = math.sqrt(max(var, 0.0))
    if kind == "exploit":
        return mean >= cost
    if kind == "ucb":
        return mean + alpha * sd >= cost
    if kind == "thompson":
        return mean + z * sd > cost
    if kind == "dtd_ucb":
        return mean + alpha * projection * sd > cost
    if kind == "dtd_dp":
        return mean + alpha * benefit > cost
    raise ValueError(kind)


def pick(probs, u):
    """The first item whose cumulative probability exceeds u."""
    total = 0.0
    for i, p in enumerate(probs):
        total += p
        if u < total:
            return i
    return max(i for i, p in enumerate(probs) if p > 0)


def episode(problem, kind, alpha, theta, uniforms, noise, thompson, benefit=None):
    """One user, one policy: (items, feedback, decisions, reward, realised reward).

    `problem` has the fields items, probs, mu, Sigma, noise_sd, cost, gamma; `benefit(i, net_mean, var)` is
    the exploration benefit that dtd_dp sees in item i.
    """
    items = [list(map(float, x)) for x in problem.items]
    probs = list(map(float, problem.probs))
    mu, Sigma = list(map(float, problem.mu)), [list(map(float, row)) for row in problem.Sigma]
    seen, feedback, decisions, reward, realised = [], [], [], 0.0, 0.0
    for n in range(len(uniforms)):
        i = pick(probs, uniforms[n])
        x = items[i]
        noise_var = problem.noise_sd**2 * sum(a != 0 for a in x)
        y = inner(x, theta) + math.sqrt(noise_var) * noise[n]
        mean, var = inner(x, mu), inner(x, times(Sigma, x))
        forward = wanted(kind, alpha, mean, var, problem.cost, mean_projection(items, probs, x), thompson[n],
                         benefit(i, mean - problem.cost, var) if benefit else 0.0)
        if forward:
            reward += problem.gamma ** (n + 1) * (inner(x, theta) - problem.cost)
            realised += problem.gamma ** (n + 1) * (y - problem.cost)
            mu, Sigma = update(mu, Sigma, x, y, noise_var)
        seen.append(i)
        feedback.append(y)
        decisions.append(forward)
    return seen, feedback, decisions, reward, realised
