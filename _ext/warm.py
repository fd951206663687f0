"""Compiles the kernels that most chapters run, before any is run: python _ext/warm.py

Compiling takes minutes the first time, and two chapters that begin side by side would each compile the same kernels.  So two
processes share them out here, and say what took how long; when all is in numba's cache this takes seconds.  A kernel that is not
among them is compiled where it is met.
"""
import subprocess
import sys
import time

SHORTEST = .5           # seconds; what is quicker was in the cache


def jobs():
    """What to run once, by name, in an order in which two processes that take every second one are busy for about as long."""
    import numpy as np
    from lib import bound, dp, policies, simulate
    from lib.problem import make_problem

    apart = make_problem(np.eye(2), [.6, .4], [.3, .1], np.diag([1, .5]), .7, .4, .9)
    mixed = make_problem([[1, 0], [.5, .5], [0, 1]], [.4, .3, .3], [.3, .1], [[1, .2], [.2, .5]], .7, .4, .9)
    signed = mixed._replace(items=np.array([[1, 0], [.5, -.5], [0, 1.0]]))
    plain = [policies.exploit(), policies.ucb(.3), policies.thompson(), policies.dtd_ucb(.3)]
    return {
        "brackets of the dynamic program": lambda: bound.decomposition(apart, .1),
        "policies that look ahead": lambda: simulate.replicate(mixed, [policies.knowledge_gradient(), policies.patient()], 4, 4),
        "brackets of general programs": lambda: bound.decomposition_for(signed, .2),
        "exact values of policies": lambda: simulate.decoupled(apart, policies.clusters()),
        "charges along paths": lambda: bound.dual_first(mixed, 40, sequences=8),
        "simulation": lambda: [simulate.replicate(problem, plain, 4, 4) for problem in (apart, mixed)],      # either engine
        "indices": lambda: dp.gittins_index(.9, [1, 2], 1e-2),
        "tables of DTD-DP": lambda: simulate.replicate(mixed, [policies.dtd_dp(1.0)], 4, 4),
    }


def run(part):
    """Run every second job, from number `part` on."""
    for name, job in list(jobs().items())[part::2]:
        begin = time.monotonic()
        job()
        if time.monotonic() - begin > SHORTEST:
            print(f"compiled: {name}, {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(int(sys.argv[1]))
    else:
        parts = [subprocess.Popen([sys.executable, __file__, str(part)]) for part in range(2)]
        sys.exit(max(part.wait() for part in parts))
