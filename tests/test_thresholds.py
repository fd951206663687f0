"""What lies exactly at a threshold, and just beyond it; what is cut off, and what leaving it out may change."""
import os

import numpy as np
import pytest

from lib import bound, cache, policies, simulate
from lib.bound import catalogue, duality
from lib.bound.conditionals import conditional
from lib.datasets import readers, records, topics
from lib.problem import Estimate, as_covariance, as_positions, make_problem
from lib.report import interrupt
from lib.simulate import instances

SMALL = make_problem([[1, 0], [0, 1], [.5, .5]], [.4, .4, .2], [0, 0], [[1, .3], [.3, 1]], 1, .1, .9)


def test_a_covariance_may_be_negative_by_a_billionth_of_its_scale_and_no_more():
    for scale in (1.0, 1e6):
        assert as_covariance("Sigma", scale * np.diag([1, -1e-9]), 2)[1, 1] == -1e-9 * scale
        for below in (1.01e-9, 1.09e-9, 1e-8):
            with pytest.raises(ValueError, match="not positive semi-definite"):
                as_covariance("Sigma", scale * np.diag([1, -below]), 2)


def test_positions_end_before_the_count_and_are_a_list():
    assert as_positions("of", [0, 4], 5).tolist() == [0, 4]
    for wrong in ([5], [-1], [.5], [[1]], [True], []):
        with pytest.raises(ValueError, match="of "):
            as_positions("of", wrong, 5, 1)


def test_an_error_shows_the_same_whatever_follows_its_cut():
    long = "a" * 61
    assert {readers.shown(long + end) for end in ("", "b", "'", "'\"", "\n")} == {"'" + "a" * 59 + "…"}
    assert readers.shown("a" * 60) == repr("a" * 60) and readers.shown("a" * 61).endswith("…")


def test_ratings_far_apart_in_time_are_in_the_order_of_users_all_the_same():
    """Numbers of users and times of which one 64-bit key would run over."""
    user = np.array([2**31 - 1, 0, 2**31 - 1, 0])
    for last in (2**30, 2**32, 2**33, 2**40, 2**61):
        assert records.time_order(user, np.array([last, last, 0, 0])).tolist() == [3, 1, 2, 0]


def test_shares_may_miss_one_by_a_millionth():
    rows, wrong = topics.checked(np.array([[.5, .5 + .99e-6], [.5, .5 - .99e-6], [.5, .5 + 1.01e-6], [.5, .5 - 1.01e-6]]))
    assert wrong.tolist() == [False, False, True, True] and rows.sum(axis=1) == pytest.approx(1, abs=1e-15)


def test_a_file_that_nobody_may_write_is_read_only_also_where_all_may_run_it(tmp_path):
    path = tmp_path / "page.html"
    path.touch()
    for mode in (0o444, 0o555, 0o111, 0o001):
        path.chmod(mode)
        with pytest.raises(ValueError, match="it is read-only"):
            cache.destination(path)
    path.chmod(0o644)
    assert cache.destination(path) == path.resolve() and os.access(path, os.W_OK)


@pytest.mark.parametrize("hopeless, paths, items, each", [(0, 64, 8, 8), (0, 65, 8, 8), (0, 3, 8, 1), (0, 300, 256, 1), (0, 1000, 4, 250),
                                                          (2, 64, 8, 10), (8, 64, 8, 0)])
def test_sampled_items_share_the_paths_equally_and_each_has_one_at_least(hopeless, paths, items, each, monkeypatch):
    """But for the first ones, which even full observation leaves below what forwarding earns without learning: they have none."""
    asked, worth = [], np.where(np.arange(items) < hopeless, -99.0, 1.0)

    def least_charges(problem, first, *_):
        asked.append(first)
        return np.full(len(first), .5)

    def sample(problem, items, sequences, seed):
        return np.arange(items) % 3, catalogue.First(worth, Estimate(90.0, .1), 9.0, 9)

    monkeypatch.setattr(duality, "least_charges", least_charges)
    monkeypatch.setattr(catalogue, "sample", sample)
    monkeypatch.setattr(catalogue, "bounded", lambda problem, first: (first.values.mean(), 0.0, 2.0))
    found = bound.dual_first(SMALL, paths, items=items)
    assert found.mean == pytest.approx((worth.sum() - .5 * (items - hopeless)) / items)
    assert len(asked) == (each > 0) and all(part.tolist() == np.repeat(np.arange(hopeless, items) % 3, each).tolist() for part in asked)


@pytest.mark.parametrize("shape", [(6,), (2, 3, 1), (0, 3), (3, 0), ()])
def test_a_stream_is_a_table_of_users_and_items(shape):
    given = simulate.Stream(np.zeros(shape, int), *[np.zeros(shape)] * (len(simulate.Stream._fields) - 1))
    with pytest.raises(ValueError, match=r"items of the stream must have shape \(R, horizon\)"):
        simulate.play(SMALL, [policies.exploit()], given)


def test_preferences_that_tell_nothing_of_one_another_leave_a_spread_of_exactly_zero():
    law = conditional(make_problem(np.eye(3), np.full(3, 1 / 3), np.zeros(3), [[2, .5, 0], [.5, 1, 0], [0, 0, 3]], 1, 0, .9))
    assert law.sd[2] == 0 and law.var[2] == 3 and (law.weights[2] == 0).all() and (law.sd[:2] > 0).all()
    assert law.sd[:2]**2 + law.var[:2] == pytest.approx([2, 1]) and law.var[:2] == pytest.approx([2 - .25, 1 - .125])


@pytest.mark.parametrize("scale", (1e-3, 1.0, 1e4))
def test_conditional_variances_and_their_doubt_have_the_unit_of_the_preferences(scale):
    """Five correlated preferences: the variances by the inverse of Sigma, the doubt a few roundings of each."""
    A = np.random.default_rng(0).standard_normal((5, 5))
    Sigma = A @ A.T * scale**2
    law = conditional(make_problem(np.eye(5), np.full(5, .2), np.zeros(5), Sigma, scale, 0, .9))
    assert law.var == pytest.approx(1 / np.diag(np.linalg.inv(Sigma)), rel=1e-9)
    assert (8 * 2.0**-53 * np.diag(Sigma) <= law.doubt * (1 + 1e-12)).all() and (law.doubt <= 1e-11 * np.diag(Sigma)).all()
    others = [[j for j in range(5) if j != i] for i in range(5)]
    for i, rest in enumerate(others):
        assert law.weights[i, rest] == pytest.approx(np.linalg.solve(Sigma[np.ix_(rest, rest)], Sigma[rest, i]), rel=1e-6)


def test_groups_are_features_that_are_correlated_or_come_together():
    Sigma = np.eye(6)
    Sigma[0, 3] = Sigma[3, 0] = .4
    items = np.vstack([np.eye(6), [0, .5, 0, 0, .5, 0]])
    order, sizes = instances._groups(make_problem(items, np.full(7, 1 / 7), np.zeros(6), Sigma, 1, 0, .9))
    ends = np.cumsum(sizes)
    assert sorted(tuple(sorted(order[a:b].tolist())) for a, b in zip(ends - sizes, ends)) == [(0, 3), (1, 4), (2,), (5,)]


@pytest.mark.parametrize("terminal, before", [(True, b"\n"), (False, b"")])
def test_an_interruption_begins_a_line_of_its_own_on_a_terminal(terminal, before, monkeypatch):
    done = []
    monkeypatch.setattr(os, "isatty", lambda stream: terminal and stream == 2)
    monkeypatch.setattr(os, "write", lambda *given: done.append(given))
    monkeypatch.setattr(os, "_exit", done.append)
    interrupt.stop(2, None)
    assert done == [(2, before + b"interrupted: no page was written\n"), 130]
