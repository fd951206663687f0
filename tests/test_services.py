"""Services that learn the prior: against one dense regression on all users, plain loops, and one item a user."""
import numpy as np
import pytest

from lib import policies, simulate
from lib.population import Users, estimate
from lib.problem import make_problem, noise_var
from lib.simulate import Service, Start, services

import naive

ITEMS = np.array([[1.0, 0.0], [0.0, 1.0], [.5, .5]])
TRUTH = make_problem(ITEMS, [.4, .4, .2], [.2, -.1], [[.6, .2], [.2, .5]], .7, .1, .8)
START = Start(np.array([.1, .2]), np.array([[.3, .1], [.1, .2]]), np.array([[.4, .0], [.0, .8]]), 2.0)
USERS, HORIZON = 6, 7


def conditional(seen, user, mu, V, Sigma):
    """N(mean, cov) of (mean of all users, theta of `user`) by conditioning one dense vector on all feedback in `seen`.

    The vector is (mu, theta_0, ..., theta_user), and seen holds (user, item, y): the two-level model as one linear regression.
    """
    k, size = len(mu), (user + 2) * len(mu)
    prior = np.tile(V, (user + 2, user + 2))
    for u in range(user + 1):
        prior[(u + 1) * k:(u + 2) * k, (u + 1) * k:(u + 2) * k] += Sigma
    mean = np.tile(mu, user + 2)
    if seen:
        rows = np.zeros((len(seen), size))
        for row, (u, i, _) in zip(rows, seen):
            row[(u + 1) * k:(u + 2) * k] = ITEMS[i]
        noise = np.diag([noise_var(TRUTH)[i] for _, i, _ in seen])
        gain = prior @ rows.T @ np.linalg.inv(rows @ prior @ rows.T + noise)
        mean, prior = mean + gain @ (np.array([y for *_, y in seen]) - rows @ mean), prior - gain @ rows @ prior
    last = slice(size - k, size)
    return (mean[:k], prior[:k, :k]), (mean[last], prior[last, last])


def served(service, start=START, run=0, users=USERS, horizon=HORIZON, seed=3):
    """(rewards, forwards, away) of one run, and what it met."""
    found = simulate.serve(TRUTH, [service], start, users, run + 1, horizon, seed)
    return [part[0, run] for part in found], services.crowd(TRUTH, seed, run, users, horizon)


@pytest.mark.parametrize("alpha", [0.0, .4])
def test_every_decision_is_that_of_one_regression_on_all_users(alpha):
    for run in range(5):
        (rewards, forwards, _, away), met = served(Service(policies.ucb(alpha)), run=run)
        seen = []
        for u in range(USERS):
            believed = conditional(seen, u, START.mu, START.V, TRUTH.Sigma)[0][0]
            assert away[u] == pytest.approx(np.sqrt(TRUTH.probs @ (ITEMS @ (believed - TRUTH.mu))**2), rel=1e-9)
            reward, sent = 0.0, 0
            for i, y, pay in zip(met.items[u], met.feedback[u], met.pay[u]):
                _, (mean, cov) = conditional(seen, u, START.mu, START.V, TRUTH.Sigma)
                if ITEMS[i] @ mean + alpha * np.sqrt(ITEMS[i] @ cov @ ITEMS[i]) >= TRUTH.cost:
                    reward, sent = reward + pay, sent + 1
                    seen.append((u, i, y))
            assert forwards[u] == sent and rewards[u] == pytest.approx(reward, abs=1e-12)


def replayed(service, decide, start=START, run=0):
    """A service in plain loops: `decide(mu, Sigma, V, i)` of a belief about a user that begins at the belief about all."""
    (rewards, forwards, *_), met = served(service, start, run)
    mean, V, Sigma, grams, moments = start.mu, start.V, TRUTH.Sigma, [], []
    if service.learns == "prior":
        Sigma = start.guess
    for u in range(USERS):
        mu, cov, reward, sent = mean, Sigma + (V if service.doubt == "counted" else 0), 0.0, 0
        if service.doubt == "drawn":
            values, vectors = np.linalg.eigh(V)
            mu = mean + vectors @ (np.sqrt(values) * met.draws[u])
        gram, moment = np.zeros((2, 2)), np.zeros(2)
        for i, y, pay in zip(met.items[u], met.feedback[u], met.pay[u]):
            if u < service.welcome or decide(mu, cov, V, i):
                mu, cov = map(np.array, naive.update(list(mu), cov.tolist(), list(ITEMS[i]), y, noise_var(TRUTH)[i]))
                gram, moment = gram + np.outer(ITEMS[i], ITEMS[i]) / noise_var(TRUTH)[i], moment + ITEMS[i] * y / noise_var(TRUTH)[i]
                reward, sent = reward + pay, sent + 1
        assert (forwards[u], rewards[u]) == (sent, pytest.approx(reward, abs=1e-10)), (service, run, u)
        grams.append(gram)
        moments.append(moment)
        if service.learns == "mean":
            A = np.linalg.inv(np.eye(2) + gram @ Sigma) @ gram
            after = np.linalg.inv(np.linalg.inv(V) + A)
            mean, V = mean + after @ np.linalg.inv(np.eye(2) + gram @ Sigma) @ (moment - gram @ mean), after
        elif service.learns == "prior":
            for _ in range(1 if sent else 0):
                mean, Sigma, info = plain_step(grams, moments, mean, Sigma, start)
                V = np.linalg.inv(np.linalg.inv(start.V) + info)
    return forwards


def plain_step(grams, moments, mean, Sigma, start):
    """One step of expectation-maximisation with the information form of every formula."""
    P, heard = np.linalg.inv(Sigma), [u for u, gram in enumerate(grams) if gram.any()]
    covs = [np.linalg.inv(P + grams[u]) for u in heard]
    thetas = [cov @ (P @ mean + moments[u]) for cov, u in zip(covs, heard)]
    info = sum(P - P @ cov @ P for cov in covs)
    new = np.linalg.solve(np.linalg.inv(start.V) + len(heard) * P, np.linalg.solve(start.V, start.mu) + P @ sum(thetas))
    spread = sum(cov + np.outer(t - new, t - new) for cov, t in zip(covs, thetas))
    return new, (spread + start.weight * start.guess) / (len(heard) + start.weight), info


@pytest.mark.parametrize("learns", ["mean", "prior", "nothing"])
@pytest.mark.parametrize("doubt", ["counted", "ignored", "drawn"])
def test_every_way_to_learn_and_to_doubt_in_plain_loops(learns, doubt):
    service = Service(policies.exploit(), learns, doubt, .5, 2)

    def decide(mu, cov, V, i):
        return ITEMS[i] @ mu + .5 * np.sqrt(ITEMS[i] @ V @ ITEMS[i]) >= TRUTH.cost
    if learns == "nothing":
        same = START._replace(guess=TRUTH.Sigma)
        assert replayed(service, decide, same, 1).sum() > 0
    else:
        sent = [replayed(service, decide, run=run) for run in range(3)]
        assert 0 < np.mean(sent) < HORIZON


def test_the_knowledge_gradient_of_a_session_is_the_paper_s():
    for run in range(3):
        service = Service(policies.knowledge_gradient(), "mean")

        def decide(mu, cov, V, i):
            later = TRUTH.gamma / (1 - TRUTH.gamma)
            x, st = ITEMS[i], ITEMS @ cov @ ITEMS[i] / np.sqrt(ITEMS[i] @ cov @ ITEMS[i] + noise_var(TRUTH)[i])
            more = [naive.expected_gain(net, abs(s)) for net, s in zip(ITEMS @ mu - TRUTH.cost, st)]
            return later * (TRUTH.probs @ more) > TRUTH.cost - x @ mu
        replayed(service, decide, run=run)


def test_who_knows_the_prior_earns_what_the_simulation_says():
    rules = [policies.exploit(), policies.ucb(.3), policies.knowledge_gradient()]
    found = simulate.serve(TRUTH, [Service(rule, "all") for rule in rules], START, 50, 80, 40, 1).rewards
    other = simulate.replicate(TRUTH, rules, 4000, 40, 2)
    apart = found.mean(axis=(1, 2)) - other.mean(axis=1)
    assert (np.abs(apart) < 4 * other.std(axis=1) * np.sqrt(2 / 4000)).all()


def test_one_item_a_user_is_the_single_feature_problem():
    """Silence of exploitation and of UCB among users of one item, against the certified probability."""
    truth = make_problem([[1]], [1], [0], [[.36]], .8, 0, .5)
    rng, runs = np.random.default_rng(1), 150
    for bonus, lift in ((0.0, .2), (.4, -.1)):
        silent = np.empty(runs)
        for r, mu in enumerate(lift + rng.standard_normal(runs)):
            there = truth._replace(mu=np.array([mu]))
            start = Start([lift], [[1.0]], [[1.0]])
            service = Service(policies.exploit(), "mean", "ignored", bonus)
            silent[r] = not simulate.serve(there, [service], start, 80, 1, 1, (7, r)).open[0, 0, -1]
        believed = make_problem([[1]], [1], [lift], [[1]], np.sqrt(.36 + .64), 0, .5)
        found = simulate.threshold_rule(believed, bonus, 80, .1).silent
        assert found.lower - 4 * np.sqrt(.25 / runs) < silent.mean() < found.upper + 4 * np.sqrt(.25 / runs)


def test_a_silent_service_stays_silent_and_says_so():
    low = START._replace(mu=np.array([-3.0, -3.0]), V=.01 * np.eye(2))
    found = simulate.serve(TRUTH, [Service(policies.ucb(.3), learns) for learns in ("mean", "prior", "nothing")], low, 20, 3, 9)
    assert not found.open.any() and not found.forwards.any() and not found.rewards.any()
    assert (np.ptp(found.away, axis=2) == 0).all()


def test_what_a_user_pays_is_discounted_worth_less_the_cost():
    """Without noise feedback is the worth."""
    met = services.crowd(TRUTH._replace(noise_sd=1e-12), 3, 0, 40, HORIZON)
    plain = [[TRUTH.gamma**n * (y - TRUTH.cost) for n, y in enumerate(row, 1)] for row in met.feedback]
    assert met.pay == pytest.approx(np.array(plain), abs=1e-10)


def test_sixteen_runs_of_200_users_unless_asked_otherwise():
    assert simulate.serve(TRUTH, [Service(policies.exploit(), "nothing")], START, horizon=1).rewards.shape == (1, 16, 200)


def test_services_meet_the_same_users_whatever_stands_beside_them():
    pair = [Service(policies.exploit()), Service(policies.ucb(.5), "prior", "drawn")]
    both, alone = simulate.serve(TRUTH, pair, START, 9, 5, 8, 4), simulate.serve(TRUTH, pair[1:], START, 9, 2, 8, 4)
    for part, other in zip(both, alone):
        np.testing.assert_array_equal(part[1:, :2], other)


def test_censored_feedback_gives_the_mean_and_averages_of_it_do_not():
    """Exploitation serves 3,000 users: maximum likelihood finds mean and spread, plain averages are biased either way."""
    truth = make_problem([[1]], [1], [0], [[1]], 1, -.2, .5)
    met = services.crowd(truth, 8, 0, 3000, 12)
    gram, moment = np.zeros((3000, 1, 1)), np.zeros((3000, 1))
    for u in range(3000):
        while gram[u, 0, 0] < 12 and moment[u, 0] / (1 + gram[u, 0, 0]) >= truth.cost:       # posterior mean of N(0, 1)
            moment[u] += met.feedback[u, int(gram[u, 0, 0])]
            gram[u] += 1
    found = estimate(Users(gram, moment), [0], [[100]], [[.5]], 1e-3, 60)
    assert abs(found.mu[0]) < 4 * np.sqrt(2 / 3000) and abs(found.Sigma[0, 0] - 1) < .2
    assert moment.sum() / gram.sum() > .3                   # who liked more was sent more
    assert np.mean(moment[:, 0] / gram[:, 0, 0]) < -.1      # bad luck ends a user's answers, good luck does not


@pytest.mark.parametrize("bad, message", [
    (dict(services=[]), "services is"), (dict(services=[Service(policies.thompson())]), "services holds"),
    (dict(services=[Service(policies.dtd_dp())]), "services holds"), (dict(services=[None]), "services is"),
    (dict(services=[Service(policies.exploit(), "much")]), "learns is 'much'"),
    (dict(services=[Service(policies.exploit(), "mean", "none")]), "doubt is"),
    (dict(services=[Service(policies.exploit(), optimism=-1.0)]), "optimism is -1"),
    (dict(services=[Service(policies.exploit(), welcome=-1)]), "welcome must be"),
    (dict(start=None), "start is"), (dict(start=START._replace(mu=[0.0])), "mu of start must have"),
    (dict(start=START._replace(guess=np.zeros((2, 2)))), "guess of start"), (dict(start=START._replace(weight=0.0)), "weight of start"),
    (dict(users=0), "users"), (dict(runs=0), "runs"), (dict(horizon=1.5), "horizon"), (dict(seed=-1), "seed")])
def test_what_is_refused(bad, message):
    good = dict(problem=TRUTH, services=[Service(policies.exploit())], start=START, users=2, runs=1, horizon=2, seed=0)
    with pytest.raises(ValueError, match=message):
        simulate.serve(**(good | bad))
