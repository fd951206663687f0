"""Verdicts follow from numbers: each rule is shown numbers that must turn it."""
import numpy as np
import pandas as pd
import pytest

from lib.experiments import ledger, published


@pytest.mark.parametrize("differences, expected", [
    ([.5, .0], "holds"), ([.5, -.5], "does not hold"), ([.5, .4, -.5], "holds in part"), ([.0, .0], "cannot be tested"),
    ([-.5, -.5], "does not hold")])
def test_outperforms(differences, expected):
    d = ledger.compare(range(len(differences)), differences, [.1] * len(differences))
    assert ledger.outperforms([d]) == expected


def test_outperforms_every_rival_or_in_part():
    ahead, level = ledger.compare([1], [1], [.1]), ledger.compare([1], [0], [.1])
    assert ledger.outperforms([ahead, ahead]) == "holds"
    assert ledger.outperforms([ahead, level]) == "holds in part"


def test_a_comparison_counts_what_is_resolved_and_keeps_the_extremes():
    d = ledger.compare([1, 2, 3, 4], [.4, -.2, .31, 0], [.1, .1, .1, 0])
    assert d == (2, 0, 4, (.4, .1, 1.0), (-.2, .1, 2.0))
    assert ledger.describe("A", "B", d) == "A minus B: ahead at 2, behind at 0 of 4 costs, +0.40 ± 0.20 at cost 1"


def test_lifetimes_are_a_discount_and_another_discount_is_found_out(monkeypatch):
    assert ledger.lifetime() < 4
    rng = np.random.default_rng(0)

    class Slower:
        exponential = staticmethod(lambda scale, size: rng.exponential(1.1 * scale, size))
        poisson = staticmethod(rng.poisson)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Slower)
    assert ledger.lifetime() > 4


def test_the_printed_sum_equals_the_optimum_where_norms_are_one():
    rng = np.random.default_rng(1)
    for _ in range(20):
        items, theta = np.eye(3)[rng.integers(3, size=6)], rng.normal(size=3)
        assert ledger.printed_sum(items, theta, .3) == pytest.approx(ledger.informed_optimum(items, theta, .3))
    assert ledger.printed_sum([[1, 0], [1, 1]], [.6, .6], 1) < ledger.informed_optimum([[1, 0], [1, 1]], [.6, .6], 1)


def test_the_sums_of_known_preferences_are_those_of_the_hand():
    assert ledger.informed_optimum([[1, 0], [1, 1]], [.6, .6], 1) == pytest.approx(9 * .1)          # (0 + .2)/2
    assert ledger.printed_sum([[1, 0], [1, 1]], [.6, .6], 1) == pytest.approx(9 * .05)              # .6 + .6 - 1 - .5, and .6 - .5
    assert ledger.informed_optimum([[2], [0]], [.7], .4, .5) == pytest.approx(.5)
    assert ledger.printed_sum([[2], [1]], [.7], .4, .5) == pytest.approx((1. + .3) / 2)             # two sizes, the cost of each its own


def test_the_examples_of_two_claims_are_those_of_the_hand():
    shift, norm = ledger.sign_claim(), ledger.norm_claim()
    assert shift.verdict == norm.verdict == "does not hold"
    assert "optimum of 1.800 into 3.600; splitting into two parts keeps 1.800" in shift.measured    # .6 - .2 and 0; 1 - .2 and 0
    assert "the optimum 0.90 where the printed sum is 0.45" in norm.measured


@pytest.mark.parametrize("leads, verdict", [
    ([[9, 1], [9, 1]], "holds"), ([[9, 1], [1, 9]], "holds in part"), ([[1, 9], [1, 9]], "does not hold"), ([[1, 1], [1, 1]], "does not hold"),
    ([[9, 1], [1, 1]], "holds"), ([[1, 1], [1, 9]], "does not hold")])
def test_alignment_is_judged_by_differences_beyond_their_errors(leads, verdict, monkeypatch):
    rows = [(correlation, policy, mix, lead, 1.0) for correlation, policy, ends in ((0.0, "A", leads[0]), (.5, "B", leads[1]))
            for mix, lead in zip((0.0, 1.0), ends)]
    table = pd.DataFrame(rows, columns=["correlation", "policy", "mix", "lead", "lead_se"])
    monkeypatch.setattr(published, "load", lambda name: table)
    claim, = ledger.alignment_claim()
    assert claim.verdict == verdict and f"A {leads[0][0] - leads[0][1]:+.1f} ± 2.8 at correlation 0" in claim.measured


def simulated(monkeypatch, name, change):
    """The published tables with one of them changed."""
    true = published.load
    monkeypatch.setattr(published, "load", lambda other, *rest: change(true(other, *rest)) if other == name else true(other, *rest))


def test_a_gap_of_dtd_dp_would_turn_the_verdict(monkeypatch):
    before = next(c for c in ledger.simulated_claims() if c.says.startswith("DTD-DP coincides"))
    assert before.verdict == "holds"
    simulated(monkeypatch, "simulated", lambda t: t.assign(mean=t["mean"] - .05 * (t.policy == "DTD-DP")))
    after = next(c for c in ledger.simulated_claims() if c.says.startswith("DTD-DP coincides"))
    assert after.verdict == "does not hold" and after.measured != before.measured


def test_a_gap_where_nothing_varies_would_turn_the_verdict_too(monkeypatch):
    simulated(monkeypatch, "simulated", lambda t: t.assign(bound=t.bound + .01 * (t.se == 0)))
    assert {c.verdict for c in ledger.simulated_claims() if "coincides" in c.says} == {"does not hold"}


def test_a_lead_of_dtd_ucb_on_ratings_would_turn_the_verdict(monkeypatch):
    find = lambda: next(c for c in ledger.stream_claims() if c.says == "DTD-UCB outperforms all others on rated items.")
    assert find().verdict != "holds"
    simulated(monkeypatch, "ratings_sharp", lambda t: t.assign(over_ucb=t.over_ucb + 1.0 * (t.policy == "DTD-UCB")))
    assert find().verdict == "holds"


def test_a_tighter_or_looser_bound_would_turn_the_verdict(monkeypatch):
    find = lambda: next(c for c in ledger.bound_claims() if c.section == "V")
    for name in published.SHARP:
        simulated(monkeypatch, f"{name}_sharp", lambda t: t.assign(share=1.0))
    assert find().verdict == "holds"
    simulated(monkeypatch, "documents_sharp", lambda t: t.assign(share=.8))
    assert find().verdict == "holds in part"


@pytest.mark.slow
def test_the_ledger_is_in_the_order_of_the_paper_and_every_verdict_is_known():
    found = ledger.claims()
    assert {c.verdict for c in found} <= set(ledger.VERDICTS) and len(found) >= 18
    assert [c.section for c in found] == sorted((c.section for c in found), key=lambda s: (s.split("-")[0], s))
    lines = ledger.markdown(found).splitlines()
    assert len(lines) == len(found) + 2 and all(line.count(" | ") == 4 for line in lines[2:])


def test_the_interval_of_the_best_policy_covers_all_at_once(monkeypatch):
    table = pd.DataFrame({"cost": [1., 1.], "policy": ["a", "b"], "value": [1., 2.], "bound": [3., 3.], "share_se": [.1, .2]})
    monkeypatch.setattr(published, "load", lambda name: table)
    row, = ledger.certified("any").itertuples()
    assert row.policy == "b" and row.share_half == pytest.approx(2.2414 * .2, rel=1e-4)          # 1 - .025 / 2, SciPy's tables


@pytest.mark.parametrize("lowest, often, typically", [
    ((85, 90, 95), "holds", "holds"), ((85, 70, 95), "holds", "holds in part"), ((85, 90, 30), "holds", "holds in part"),
    ((85, 29, 90), "holds in part", "holds in part"), ((79, 90, 70), "holds", "holds in part"), ((79, 79, 70), "holds", "does not hold"),
    ((20, 30, 40), "holds in part", "does not hold")])
def test_tightness_is_judged_by_the_lowest_share_of_all_streams(lowest, often, typically):
    made = dict(zip(("simulated", "ratings", "documents"), lowest))
    claims = ledger.tightness_claims({name: pd.Series([.99, low / 100, .995], index=[.5, .7, .9]) for name, low in made.items()})
    first, second = next(claims), next(claims)
    assert (first.verdict, second.verdict) == (often, typically)
    assert first.measured.endswith("lowest shares: " + ", ".join(f"{name} {value} % at cost 0.7" for name, value in made.items()))
    assert "simulated 99 %" in second.measured


def test_the_share_of_the_bound_is_the_best_policys_at_each_cost():
    table = pd.DataFrame({"cost": [1, 1, 2, 2], "mean": [1., 3, 2, 1], "bound": [4., 4, 8, 8], "policy": ["a", "b"] * 2, "chosen": True})
    assert ledger.shares(table).to_dict() == {1: .75, 2: .25}
