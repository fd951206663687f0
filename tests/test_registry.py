"""A policy that is added by its entry in the registry alone reaches the simulation, pictures and the report."""
import naive
import numpy as np
import pytest

from lib import datasets, experiments, figures, marks, policies, simulate, streams
from lib.experiments import sources, specs
from lib.policies.rules import INDEX, Family, Policy, find, grid, register, weight
from lib.problem import make_problem
from lib.report import analysis, page

ITEMS = [[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0], [0, 0, 0], [0, 0.7, 2]]


def popular(alpha):
    """Forward iff x.mu + alpha P(X = x) sqrt(x Sigma x) > cost: what comes often is worth exploring."""
    return Policy("popular", weight(alpha))


def popular_bonus(problem, policy):
    return policy.alpha * problem.probs


@pytest.fixture
def toy(monkeypatch):
    """The whole path: an entry, a line of the oracle, and, for experiments, the spec; all undone afterwards."""
    before = dict(marks.MARKS)
    monkeypatch.setitem(policies.REGISTRY, "popular", None)
    del policies.REGISTRY["popular"]
    register(Family("popular", "Popularity", popular, INDEX, bonus=popular_bonus, tuned=(.5, 5.0),
                    marks=(("Popularity", "#123456", "d"),)))
    monkeypatch.setitem(naive.RULES, "popular", lambda alpha, seen: seen.mean + alpha * seen.prob * seen.sd > seen.cost)
    monkeypatch.setattr(specs, "GRID", grid(("exploit", "ucb", "popular")))
    yield popular(5)
    marks.MARKS.clear()
    marks.MARKS.update(before)


def test_the_simulation_runs_it_as_the_plain_loops_do(toy):
    problem = make_problem(ITEMS, [.3, .3, .2, .1, .1], [.1, .2, .1], [[1, .4, 0], [.4, 2, -.3], [0, -.3, .5]], 1, .35, .9)
    got = simulate.episodes(problem, [toy, policies.ucb(1)], 6, 30, seed=3)
    u, noise = (draw(3, purpose, 0, 30) for draw, purpose in ((streams.uniforms, streams.ITEMS), (streams.normals, streams.NOISE)))
    for r in range(6):
        want = naive.episode(problem, toy.kind, toy.alpha, list(got.theta[r]), u[r], noise[r], np.zeros(30))
        assert got.decisions[0, r].tolist() == want[2]
        assert got.rewards[0, r] == pytest.approx(want[3], abs=1e-11)
    assert 0 < got.decisions[0].mean() < 1 and (got.decisions[0] != got.decisions[1]).any()


def test_pictures_have_its_colour_and_marker(toy):
    line = np.arange(3.0)
    figure = figures.reward_over_cost(figures.Panel(line, {policies.family_name(toy): (line, line - 1, line + 1)}), 10)
    drawn = figure.axes[0].get_lines()[0]
    assert (drawn.get_color(), drawn.get_marker()) == ("#123456", "d")
    assert policies.label(toy) == "Popularity, alpha = 5"


def test_the_report_has_it_in_its_contest(toy):
    data = datasets.ratings("data/sample/items.csv", "data/sample/ratings.csv")
    prior = datasets.prior(data, holdout=0, min_ratings=1, method="empirical_bayes")
    found = analysis.analyse(data, prior, 3.5, steps=(), users=16)
    assert set(found.table.policy) == {"Exploitation", "UCB", "Popularity", "Knowledge gradient", "Hard clusters", "DTD-DP, noise of the model"}
    assert set(found.table[found.table.policy == "Popularity"].alpha) == {.5, 5.0}
    assert "Popularity" in page.render(found, page.pictures(found), "page.json")


def test_it_is_gone_afterwards():
    assert "popular" not in policies.REGISTRY and "Popularity" not in marks.MARKS and "popular" not in naive.RULES
    assert all("Popularity" not in policies.label(policy) for policy in specs.GRID)


def test_a_taken_name_or_mark_is_refused():
    for family, words in ((Family("ucb", "Other", policies.ucb, INDEX), "there is a policy ucb called UCB"),
                          (Family("other", "UCB", policies.ucb, INDEX), "there is a policy ucb called UCB"),
                          (Family("other", "Other", policies.ucb, INDEX, marks=(("Other", *marks.MARKS["UCB"]),)),
                           "is the mark of UCB")):
        with pytest.raises(ValueError, match=words):
            register(family)
        assert "other" not in policies.REGISTRY


def test_every_family_makes_policies_of_its_kind_with_a_name_of_their_own():
    made = [family.make(1.0) if family.tuned else family.make() for family in policies.REGISTRY.values()]
    assert [policy.kind for policy in made] == list(policies.REGISTRY)
    assert len({policies.label(policy) for policy in made}) == len(made)
    assert [policies.is_tuned(policy) for policy in made] == [policy.kind not in ("exploit", "thompson") for policy in made]


def test_the_grid_of_the_paper_is_five_families_and_rows_find_their_policies_in_it():
    assert specs.GRID is experiments.GRID and len(specs.GRID) == 32
    for policy in specs.GRID:
        alpha = float(f"{policy.alpha:.7g}") if policies.is_tuned(policy) else np.nan
        assert find(specs.GRID, policies.family_name(policy), alpha) is policy
    with pytest.raises(ValueError, match="name 'Magic' with alpha 1.0: there is no such policy"):
        find(specs.GRID, "Magic", 1.0)


def test_a_data_set_is_its_loader_and_one_entry(monkeypatch):
    """A loader entered into LOADERS reaches an experiment by its name, prior, policies, bound and all."""
    def toy_ratings():
        return datasets.ratings("data/sample/items.csv", "data/sample/ratings.csv")
    monkeypatch.setitem(sources.LOADERS, "toy", toy_ratings)
    monkeypatch.delenv("BOOK_YELP", raising=False)
    spec = experiments.Spec("toy ratings", "rated", (("dataset", "toy"), ("holdout", 0), ("min_ratings", 1), ("method", "empirical_bayes")), costs=(3.5,),
                            policies=grid(("exploit", "ucb")), replications=(128,) * 2, tuning=(128,) * 2, sequences=(20,) * 2, tol=None)
    table = experiments.run(spec)
    assert set(table.policy) == {"Exploitation", "UCB"} and table["bound"].iloc[0] > table["mean"].max() - 3 * table.se.max()
    assert len(experiments.build(spec)[0].items) == len(toy_ratings().items)
    with pytest.raises(ValueError, match="dataset is 'other': it must be one of movielens, toy"):
        sources.rated("other")
