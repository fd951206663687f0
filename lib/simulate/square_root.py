"""The simulation's loop for noise that is tiny beside the prior: beliefs kept as a square root of the covariance.

A covariance matrix holds x Sigma x to some 1e-16 of the prior's.  Feedback on x leaves about noise_var of it, and where
that is less, what is left is rounding: below zero as often as above, and the next update multiplies it.  A square root
holds sqrt(x Sigma x) to 1e-16 of the prior's sd instead, and a.a cannot be negative (`lib.posterior`, Potter 1963).
Dense loops, k^2 a decision: `replications` takes them only where the `noise_share` of the problem asks for them.
"""
import numpy as np

from lib.compiled import jit, put
from lib.posterior import dot, shrink_root, times
from lib.simulate.kernels import forwards


@jit
def learn(root, mu, a, noise_var, surprise):
    """The belief after feedback `surprise` above its mean on the item with a = root' x, in place."""
    along = np.zeros(len(a))
    for c in range(len(a)):
        for b in range(len(a)):
            along[c] += root[c, b] * a[b]
    total = shrink_root(root, along, a, noise_var)
    if total > 0.0:
        for c in range(len(a)):
            mu[c] += along[c] * (surprise / total)


@jit
def run(instance, root, rules, stream, rewards, decisions):
    """As `kernels.run`, from the square root (k, k) of the prior covariance."""
    belief, mu, a = root.copy(), instance.mu.copy(), np.empty(len(root))
    for p in range(len(rules.kind)):
        for r in range(rewards.shape[1]):
            put(root, belief)
            put(instance.mu, mu)
            rewards[p, r] = 0.0
            for n in range(decisions.shape[2]):
                i = stream.items[r, n]
                times(instance, i, belief, a)
                mean, var = dot(instance, i, mu), np.sum(a * a)
                decisions[p, r, n] = forwards(rules, p, i, mean, var, stream.thompson[r, n], instance.cost)
                if decisions[p, r, n]:
                    rewards[p, r] += stream.pay[r, n]
                    learn(belief, mu, a, instance.noise_var[i], stream.feedback[r, n] - mean)
