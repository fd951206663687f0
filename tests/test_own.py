"""The command that settles the paper's claims on a reader's own data, on made files in Yelp's layout with a known winner."""
import json

import numpy as np
import pandas as pd
import pytest

from lib.datasets._yelp import BUSINESSES
from lib.experiments import ledger, own, problems, specs


@pytest.fixture
def folder(tmp_path):
    """A Yelp folder whose businesses have one category each, one of them met as often as twenty others together.

    Where items are unit vectors, features are single-feature problems: DTD-DP and DTD-UCB, which see how often a category comes, explore the
    frequent one alone; UCB pays for exploring all (the paper's simulated instance).
    """
    rng = np.random.default_rng(7)
    kinds = rng.choice(6, 600, p=[.6, *[.08] * 5])
    with open(tmp_path / "yelp_academic_dataset_business.json", "w") as file:
        for i, kind in enumerate(kinds):
            file.write(json.dumps({"business_id": f"b{i}", "categories": BUSINESSES[kind]}) + "\n")
    with open(tmp_path / "yelp_academic_dataset_review.json", "w") as file:
        for user in range(200):
            theta = rng.normal(3.0, .7, 6)
            for item in rng.permutation(600)[:60]:
                stars = float(np.clip(theta[kinds[item]] + rng.normal(0, .3), 1, 5))
                day = f"2015-{1 + int(rng.integers(12)):02}-{1 + int(rng.integers(28)):02}"
                file.write(json.dumps({"user_id": f"u{user}", "business_id": f"b{item}", "stars": stars, "date": day}) + "\n")
    specs.build.cache_clear()
    yield tmp_path
    specs.build.cache_clear()


def test_one_command_gives_one_table_in_which_the_known_winner_wins(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("BOOK_YELP", "")             # which the command sets, is put back
    out = tmp_path / "claims.csv"
    assert own.main(["ratings", str(folder), "--users", "1500", "--costs", "3.2", "3.3", "--output", str(out)]) == 0
    found = pd.read_csv(out).set_index("says")
    assert len(found) == 6 and set(found.verdict) <= set(ledger.VERDICTS)
    assert found.verdict["DTD-DP outperforms exploitation and Thompson sampling."] == "holds"
    assert found.verdict["DTD-DP performs almost like UCB."] == "does not hold"
    assert found.measured["DTD-DP performs almost like UCB."].startswith("DTD-DP minus UCB: ahead at 2, behind at 0 of 2 costs")
    assert found.measured["DTD-UCB outperforms all others on rated items."].startswith("DTD-UCB minus UCB: ahead at 2, behind at 0")
    assert found.verdict["The bound is typically tight."] == "holds"       # unit vectors: the theorem is the optimum
    said = capsys.readouterr().out
    assert all(claim in said for claim in found.index)


def test_half_as_many_users_tune_and_two_at_least(monkeypatch):
    asked = []

    def run(spec):
        asked.append(spec)
        raise KeyError("enough")
    monkeypatch.setattr(own.runner, "run", run)
    for users in (1500, 2):
        with pytest.raises(KeyError, match="enough"):
            own.verdicts("ratings", users, [3.2, 3.3])
    assert [(spec.replications, spec.tuning, spec.costs) for spec in asked] == [((n, n), (m, m), (3.2, 3.3)) for n, m in ((1500, 750), (2, 2))]


def test_claims_are_printed_and_the_exit_code_is_zero(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BOOK_YELP", "")
    claim = pd.DataFrame([("IV-A", "The sky is blue.", "holds", "seen")], columns=ledger.Claim._fields[:4])
    monkeypatch.setattr(own, "verdicts", lambda name, users, costs: claim)
    assert own.main(["ratings", str(tmp_path)]) == 0 and "The sky is blue." in capsys.readouterr().out


@pytest.mark.parametrize("given, words", (
    (["ratings", "nowhere"], "nowhere"), (["ratings", "{folder}", "--users", "1"], "users must be an integer of at least 2, got 1"),
    (["ratings", "{folder}", "--costs", "nan"], "costs"), (["documents", "{folder}"], "CLICKS"),
    (["ratings", "{folder}", "--output", "{folder}/none/claims.csv"], "none")))
def test_what_is_wrong_is_said_before_anything_is_run(folder, given, words, capsys, monkeypatch):
    monkeypatch.setenv("BOOK_YELP", "")
    monkeypatch.setattr(problems, "rated", lambda **options: pytest.fail("run"))
    with pytest.raises(SystemExit) as stop:
        own.main([part.format(folder=folder) for part in given])
    assert stop.value.code == 2 and words in capsys.readouterr().err


def test_where_nothing_can_be_earned_tightness_cannot_be_tested():
    assert [claim.verdict for claim in ledger.tightness_claims({"none": pd.Series(dtype=float)})] == ["cannot be tested"] * 2


@pytest.mark.parametrize("shares, verdicts", (
    ([.9, .85], ["holds", "holds"]), ([.9, .7, .2], ["holds in part", "does not hold"]), ([.5, .4], ["holds in part", "does not hold"]),
    ([.5, .2], ["does not hold", "does not hold"])))
def test_how_tight_is_read_off_the_shares(shares, verdicts):
    assert [claim.verdict for claim in ledger.tightness_claims({"made": pd.Series(shares, [.1 * n for n in range(len(shares))])})] == verdicts
