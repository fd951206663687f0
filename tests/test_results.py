"""Published results: complete, made by what the manifest says, and able to expose a fresh run that differs."""
import json
import os

import numpy as np
import pandas as pd
import pytest

from lib import bound, experiments, policies
from lib.bound import charges
from lib.experiments import comparison, problems, published, shortfall, theorem
from lib.problem import Estimate

SMALL = {"tuning": 16, "users": 32, "paths": 100, "outer": 2, "items": 32}


@pytest.fixture(scope="module")
def fresh():
    """A table that lies within its error of the published one: the published one with noise of that size."""
    table = published.load("simulated")
    rng = np.random.default_rng(3)
    ratio = np.sqrt(table.replications / 1000)
    return table.assign(replications=1000, mean=table["mean"] + table.se * ratio * rng.uniform(-2, 2, len(table)))


@pytest.mark.parametrize("name", [*published.TABLES, *(f"{name}_sharp" for name in published.SHARP)])
def test_every_table_is_there_and_whole(name):
    table = published.load(name)
    spec = experiments.SPECS[name.removesuffix("_sharp")]
    if name in published.TABLES:
        assert len(table) == len(spec.costs) * len(spec.policies)
        assert (table.replications == spec.replications[1]).all()
        assert table.groupby(["cost", "policy"]).chosen.sum().eq(1).all()
        assert np.isfinite(table[["mean", "se", "difference", "difference_se", "hindsight", "bound"]]).all(axis=None)
    else:
        assert set(table.cost) == set(published.SHARP[name.removesuffix("_sharp")])
        assert (table.users == published.SIZES["users"]).all()
        assert (table.value - 4 * np.hypot(table.se, table.bound_se) <= table.bound).all()
        assert (table.over_ucb[table.policy == "UCB"] == 0).all()
        assert (table.left.dropna() > -4 * table.left_se.dropna()).all() and (table.share.dropna() - 3 * table.share_se.dropna() <= 1).all()


@pytest.mark.parametrize("name", published.TABLES)
def test_a_table_has_the_costs_and_policies_of_its_spec_and_the_sizes_of_the_manifest(name):
    table, spec = published.load(name), experiments.SPECS[name]
    sizes = json.loads((published.FOLDER / "manifest.json").read_text())["tables"][name]
    assert tuple(table.cost.unique()) == spec.costs
    assert sizes == {"users": spec.replications[1], "tuning": spec.tuning[1], "policies": len(spec.policies), "costs": len(spec.costs)}
    first = table[table.cost == spec.costs[0]]
    assert list(first.policy) == [policies.family_name(policy) for policy in spec.policies]
    assert first.alpha.tolist() == pytest.approx([policy.alpha or np.nan for policy in spec.policies], rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("name", published.SHARP)
def test_the_alphas_of_a_sharp_table_are_among_those_that_were_tried(name):
    table = published.load(f"{name}_sharp").dropna(subset="alpha")
    tried = {entry.name: entry.alphas for entry in published.BEYOND}
    for row in table[table.policy.isin(tried)].itertuples():
        assert min(abs(np.array(tried[row.policy]) / row.alpha - 1)) < 1e-5, row


def test_the_manifest_names_what_the_tables_rest_on():
    manifest = json.loads((published.FOLDER / "manifest.json").read_text())
    assert set(manifest) == {"python", "packages", "machine", "seed", "sharp", "tables", "runs"}
    assert set(manifest["runs"]) == {path.stem for path in published.FOLDER.glob("*.csv")}
    assert len({run["lib"] for run in manifest["runs"].values()}) == 1      # tables are read side by side: one version of the code made them all
    assert manifest["seed"] == published.SEED and manifest["sharp"] == published.SIZES
    assert manifest["seed"] not in {spec.seed for spec in experiments.SPECS.values()}


def test_a_run_within_its_error_passes_and_one_shifted_cell_does_not(fresh):
    assert published.compare(fresh, "simulated").z.abs().max() < 2.1
    worse = fresh.assign(mean=fresh["mean"].where(fresh.index != 100, fresh["mean"] + 10 * fresh.se * 10))
    first = published.compare(worse, "simulated").iloc[0]
    assert abs(first.z) > 5 and first.policy == fresh.policy[100] and first.cost == fresh.cost[100]


def test_a_value_that_does_not_vary_must_be_met_exactly(fresh):
    still = fresh.se == 0
    assert still.any()
    assert published.compare(fresh.assign(mean=fresh["mean"] + 1e-6 * still), "simulated").z.iloc[0] == np.inf


def test_another_data_set_in_the_place_of_the_books_own_is_not_compared(fresh, monkeypatch):
    monkeypatch.setenv("BOOK_YELP", "somewhere")
    apart = published.compare(fresh, "ratings_held_out")
    assert apart.empty and not apart.z.abs().max() > 4
    assert len(published.compare(fresh, "simulated")) == len(fresh)


def test_nothing_in_common_is_an_error(fresh):
    with pytest.raises(ValueError, match="simulated: .*no cost, policy and alpha in common"):
        published.compare(fresh.assign(cost=17.0), "simulated")


def test_an_unknown_table_is_an_error():
    with pytest.raises(ValueError, match="nothing: no published table, there are .*simulated"):
        published.load("nothing")


def test_a_table_that_cannot_be_made_is_named_before_anything_runs(tmp_path):
    with pytest.raises(ValueError, match="nonsense: no such table, there are simulated, .*alignment"):
        published.publish(tmp_path, ["simulated", "nonsense"])
    assert not list(tmp_path.iterdir())


def test_the_policies_that_a_table_chose_are_found():
    spec = experiments.SPECS["ratings"]
    rows = published.load("ratings").query("cost == 3.7")
    arms = experiments.chosen(spec, rows)
    assert list(arms) == ["Exploitation", "Thompson sampling", "UCB", "DTD-UCB", "DTD-DP"]
    best = rows[rows.chosen & (rows.policy == "UCB")].iloc[0]
    assert arms["UCB"].kind == "ucb" and arms["UCB"].alpha == pytest.approx(best.alpha, rel=1e-6)
    with pytest.raises(ValueError, match="ratings: the rows hold 31 policies, not the 32"):
        experiments.chosen(spec, rows.iloc[1:])


def test_write_leaves_the_old_file_when_it_fails(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    published.write(path, "old\n")

    def fails(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        published.write(path, "new\n")
    assert path.read_text() == "old\n" and [p.name for p in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.slow
def test_a_small_publication_from_end_to_end(tmp_path, monkeypatch):
    arms = (policies.exploit(), policies.thompson(), policies.ucb(.1), policies.ucb(.3), policies.dtd_ucb(.5))
    spec = experiments.SPECS["ratings"]._replace(costs=(3.7, 4.6), policies=arms, replications=(64,) * 2, tuning=(64,) * 2,
                                                 sequences=(20,) * 2, tol=.2)
    monkeypatch.setattr(published, "TABLES", ("ratings",))
    monkeypatch.setattr(published, "SHARP", {"ratings": (3.7, 4.6)})
    monkeypatch.setattr(published, "SIZES", SMALL)
    monkeypatch.setattr(published, "BEYOND", published.BEYOND[:1])
    monkeypatch.setitem(experiments.SPECS, "ratings", spec)
    published.publish(tmp_path, ["ratings", "ratings_sharp"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "ratings.csv", "ratings_sharp.csv"]
    table = published.load("ratings", tmp_path)
    again = experiments.run(spec._replace(seed=published.SEED))
    assert table["mean"].to_numpy() == pytest.approx(again["mean"].to_numpy(), rel=1e-6, abs=1e-9)
    sharp = published.load("ratings_sharp", tmp_path)
    row = sharp.query("policy == 'UCB' and cost == 3.7").iloc[0]
    assert row.share == pytest.approx(row.value / (row.value + row.short), rel=1e-5)
    above = sharp.query("cost == 4.6")                  # nothing is worth a forward: 0 over 0
    assert (above.bound == 0).all() and above.share.isna().all() and above.value.max() == 0


@pytest.mark.slow
def test_where_bounds_are_loose_they_stay_above_the_policies(monkeypatch):
    monkeypatch.setattr(published, "TWICE", published.TWICE[:1])
    fresh, kept = (table.set_index(["instance", "policy"]) for table in (published.combinations(SMALL), published.load("combinations")))
    assert fresh.index.equals(kept.index)
    for rows in (fresh, kept):
        assert (rows.value <= rows.bound + 4 * np.hypot(rows.se, rows.bound_se)).all()
        assert (rows.bound <= rows.full + 4 * np.hypot(rows.bound_se, rows.full_se)).all() and (rows.left.dropna() > -4 * rows.left_se.dropna()).all()
    for name in ("bound", "full"):
        z = (fresh[name] - kept[name]) / np.hypot(fresh[f"{name}_se"], kept[f"{name}_se"])
        assert z.abs().max() < 4.5


def test_every_version_of_the_theorem_stands_above_the_policies():
    table = published.load("theorem")
    assert {name: tuple(sorted(rows.cost.unique())) for name, rows in table.groupby("experiment")} == theorem.COSTS
    assert (table.lower <= table.upper).all() and (table.upper - table.lower <= .02 * table.upper + 2e-3).all()
    assert (table[["alone", "others"]] >= -1e-9).all(axis=None) and (table.learning >= -4 * table.learning_se - 1e-3).all()
    for name, rows in table.groupby("experiment"):
        kept = published.load(name).groupby("cost")
        earned = kept.apply(lambda part: (part["mean"] - 3 * part.se).max())
        assert (rows.upper >= rows.cost.map(earned)).all() and rows.cost.map(earned).notna().all()
    total = table.full_observation + table.alone + table.others - table.learning
    middle = (table.lower + table.upper) / 2
    assert (np.abs(total - middle) <= 4 * table.learning_se + .01 * middle + 1e-3).all()
    sim = table[table.experiment == "simulated"]
    assert (np.abs(sim.upper - sim.cost.map(published.load("simulated").groupby("cost").decomposition_upper.first()))
            <= .01 * sim.upper + 1e-6).all()


def test_a_version_is_made_as_the_table_says():
    problem = problems.combinations(True)[0]._replace(items=np.eye(6)[:2], probs=np.array([.5, .5]))
    bracket, given = theorem.version(problem, "eigen", "even", 1.0, {"sequences": 4})
    direct = bound.decomposition(problem, theorem.TOL, "model", "even", theorem.eigenbasis(problem))
    assert bracket == direct and given.observed == pytest.approx(bound.full_observation(problem, 4, 2016))
    assert len(theorem.versions(problem)) == 9 and len(theorem.versions(problems.simulated(3)[0])) == 3
    with pytest.raises(ValueError, match="basis is 'nonsense'"):
        theorem.version(problem, "nonsense", "even", 1.0)


def test_charges_can_be_sought_for_every_experiment_of_the_theorem():
    """A catalogue of thousands would be refused in the middle of a publication run."""
    for name in theorem.COSTS:
        assert theorem.free(name).items.size <= charges.MOST


def test_a_table_is_run_at_publication_size_whatever_the_switch_says(monkeypatch):
    asked = []

    def run(spec):
        asked.append(spec)
        return published.load("ratings").assign(left_out=0)

    monkeypatch.setattr(published.runner, "run", run)
    assert list(published.table("ratings").columns) == published.KEPT
    spec, = asked
    assert spec.replications == (40_000, 40_000) and spec.tuning == (20_000, 20_000) and spec.sequences == (20_000, 20_000)
    assert spec == experiments.SPECS["ratings"]._replace(seed=2016, replications=spec.replications, tuning=spec.tuning, sequences=spec.sequences)


def test_a_record_is_read_as_cells(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "RECORDS", tmp_path)
    (tmp_path / "race.txt").write_text("500 items: 4 ms\n  n    after it   rate\n 10  first, then   1.5 (2 3)\n")
    assert published.record("race") == [["500 items: 4 ms"], ["n", "after it", "rate"], ["10", "first, then", "1.5 (2 3)"]]
    with pytest.raises(OSError, match="other.txt"):
        published.record("other")


def test_publishing_writes_each_table_and_says_in_the_manifest_what_made_it(tmp_path, monkeypatch, capsys):
    made = []

    def table(name, value):
        made.append(name)
        return pd.DataFrame({"cost": [.5, 1.0], "mean": [value, 1 / 3]})

    monkeypatch.setattr(published, "tables", lambda folder: {"one": lambda: table("one", 1.5), "two": lambda: table("two", 2.5)})
    published.publish(tmp_path)
    first = json.loads((tmp_path / "manifest.json").read_text())["runs"]
    assert made == ["one", "two"] and set(first) == {"one", "two"}
    assert (tmp_path / "one.csv").read_text() == "cost,mean\n0.5,1.5\n1,0.3333333\n"
    assert (tmp_path / "manifest.json").read_text().endswith("}\n")
    assert all(run["minutes"] == 0 and run["lib"] == published.cache.code_version()[:12] for run in first.values())
    (tmp_path / "manifest.json").write_text((tmp_path / "manifest.json").read_text().replace('"minutes": 0.0', '"minutes": 7.5'))
    published.publish(tmp_path, ["two"])
    again = json.loads((tmp_path / "manifest.json").read_text())["runs"]
    assert made == ["one", "two", "two"] and (again["one"]["minutes"], again["two"]["minutes"]) == (7.5, 0)
    assert capsys.readouterr().out == "one: 2 rows, 0.0 minutes\ntwo: 2 rows, 0.0 minutes\ntwo: 2 rows, 0.0 minutes\n"


def test_tables_need_one_another_in_their_order(tmp_path):
    names = list(published.tables(tmp_path))
    assert names == [*published.TABLES, "ratings_sharp", "documents_sharp", "combinations", "others", "alignment", "theorem", "unsampled", "gittins",
                     "robustness", "many_users"]


@pytest.fixture
def spied(monkeypatch):
    """Tuning, values and bounds that are asked for, with what they were asked; each bound is 2 with an error of .1."""
    asked = {"tune": [], "evaluate": [], "bounds": [], "below": []}

    def tune(problem, entries, users, horizon=None, seed=0):
        asked["tune"].append((problem, entries, users, seed))
        return [entry.rule(entry.alphas[0]) for entry in entries]

    def evaluate(problem, rules, users, horizon=None, seed=0, reference=0):
        rules = list(rules)
        asked["evaluate"].append((problem, rules, users, horizon, seed, reference))
        values = np.arange(len(rules)) + 1.0
        return comparison.Values(Estimate(values, values / 100), Estimate(values - values[reference], values / 200), None)

    def limit(name):
        def found(problem, *args, **named):
            asked["bounds"].append((name, problem, args, named))
            return bound.Bound(name, 2.0, .1, 2.2)
        return found

    monkeypatch.setattr(comparison, "tune", tune)
    monkeypatch.setattr(comparison, "evaluate", evaluate)
    def below(problem, rules, effort, seed):
        asked["below"].append((problem, rules, effort, seed))
        return [Estimate(np.full(len(rules), left), np.full(len(rules), error))
                for left, error in ((.5, .05), (.25, .04))[:1 + (effort.outer > 0)]]

    for name in ("full_first", "dual_first", "dual_second", "full_observation"):
        monkeypatch.setattr(bound, name, limit(name))
    monkeypatch.setattr(shortfall, "stages", below)
    return asked


def test_a_sharp_table_sets_values_beside_the_bound(spied):
    rows = published.load("ratings").query("cost == 3.7")
    found = published.sharp("ratings", rows, {"users": 100, "paths": 800})
    (problem, rules, users, horizon, seed, reference), = spied["evaluate"]
    assert problem.cost == 3.7 and (users, horizon) == (100, 100) and rules[reference].kind == "ucb"
    assert list(found.policy) == ["Exploitation", "Thompson sampling", "UCB", "DTD-UCB", "DTD-DP", *(entry.name for entry in published.BEYOND)]
    assert found.value.tolist() == list(range(1, 12)) and found.over_ucb.tolist() == [value - 3 for value in found.value]
    assert found.se.tolist() == pytest.approx(found.value / 100) and found.over_ucb_se.tolist() == pytest.approx(found.value / 200)
    assert (found[["bound", "bound_se", "limit", "users", "cost"]] == [2, .1, 2.2, 100, 3.7]).all(axis=None)
    moody = "Thompson sampling", "Phased exploration"           # what these do depends on more than the belief
    assert found.short.isna().tolist() == [policy in moody for policy in found.policy]
    for row in found.itertuples():                              # the error of a quotient, of which both parts hold the value, or of two
        if row.policy in moody:
            assert row.share == row.value / 2 and row.share_se == pytest.approx(row.share * np.hypot(row.se / row.value, .1 / 2))
        else:
            whole = row.value + .5
            assert row.share == row.value / whole and row.share_se == pytest.approx(np.hypot(.5 * row.se, row.value * .05) / whole**2)
    (_, leading, whole, seed_of_lives), (_, rest, eighth, _) = spied["below"]
    assert [rule.kind for rule in leading] == ["knowledge_gradient", "knowledge_gradient", "patient"] and len(rest) == 6
    assert whole == shortfall.Effort(800) and eighth == shortfall.Effort(100, items=128) and seed_of_lives == (2016, 3, 4)
    assert [name for name, *_ in spied["bounds"]] == ["full_first", "dual_first"]
    (_, _, first, _), (_, _, dual, named) = spied["bounds"]
    assert first[0] == 100 and dual == (800,) and named["sequences"] == 800 and named["items"] is None
    seeds = [(2016,), seed, first[1]]
    assert len({tuple(part) for part in seeds}) == 3 and named["seed"] == first[1]


def test_two_forwards_are_made_exact_for_the_two_policies_where_few_items_are_worth_one(spied):
    rows = published.load("ratings").query("cost == 3.9")
    found = published.sharp("ratings", rows, {"users": 100, "paths": 800, "outer": 2}).set_index("policy")
    twice = found.loc[list(published.TWICE)]
    assert found.second.notna().sum() == len(twice) == 2 and (twice[["short", "short_se", "second", "second_se"]] == [.5, .05, .25, .04]).all(axis=None)
    assert (twice[["left", "left_se"]] == [.25, .04]).all(axis=None) and twice.share.tolist() == (twice.value / (twice.value + .25)).tolist()
    (_, leading, one, _), (_, rest, _, _), (_, both, two, _) = spied["below"]
    assert (len(leading), len(rest)) == (1, 6) and [rule.kind for rule in both] == ["knowledge_gradient", "patient"]
    assert one == shortfall.Effort(800) and two == shortfall.Effort(200, outer=2)


def test_where_the_market_is_closed_nothing_is_compared_on_the_same_lives(spied, monkeypatch):
    monkeypatch.setattr(bound, "full_first", lambda *_: bound.Bound("", 0.0, 0.0, 0.0))
    found = published.sharp("ratings", published.load("ratings").query("cost == 4.8"), {"users": 100, "paths": 800})
    assert not spied["below"] and not spied["bounds"] and found[["left", "share"]].isna().all(axis=None)


def test_combinations_have_the_policies_beside_the_bounds_for_either_prior(spied):
    found = published.combinations({"users": 100, "paths": 800, "outer": 2})
    assert list(found.instance) == ["independent"] * 6 + ["correlated"] * 6
    assert list(found.policy) == 2 * [entry.name for entry in published.BEYOND]
    assert found.value.tolist() == [*range(1, 7)] * 2 and found.over_ucb.tolist() == [*range(6)] * 2
    assert (found[["full", "full_se", "bound", "bound_se"]] == [2, .1, 2, .1]).all(axis=None)
    assert found[found.second.notna()].policy.tolist() == 2 * list(published.TWICE)
    diagonal = [not (problem.Sigma - np.diag(problem.Sigma.diagonal())).any() for problem, *_ in spied["evaluate"]]
    assert diagonal == [True, False] and all(entries == published.BEYOND and users == 1024 for _, entries, users, _ in spied["tune"])
    assert [name for name, *_ in spied["bounds"]] == ["full_first", "dual_first", "full_observation"] * 2
    seeds = [spied["below"][0][3], *(args[-1] if not named else named["seed"] for _, _, args, named in spied["bounds"][1:3])]
    assert len(set(seeds)) == 3


def test_constant_noise_and_fifty_topics_have_the_same_columns_and_sizes_that_they_can_afford(spied):
    found = published.others()
    assert [*zip(found.instance, found.cost)][::6] == [("constant noise", 3.5), ("constant noise", 3.8), ("constant noise", 4.0),
                                                       ("fifty topics", .25), ("fifty topics", .35)]
    assert list(found.columns) == list(published.combinations().columns)
    assert [problem.noise == "constant" for problem, *_ in spied["evaluate"][:5]] == 3 * [True] + 2 * [False]
    assert [users for *_, users, _, _, _ in spied["evaluate"][:5]] == 3 * [4096] + 2 * [1024]
    sampled = [named["items"] for name, _, _, named in spied["bounds"] if name == "dual_first"][:5]
    assert sampled == 3 * [None] + 2 * [512]
