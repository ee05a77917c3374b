"""Generated workloads of users who repeat themselves."""

import numpy as np

from pilotfish.simulate.model.workload import Workload


def habitual(jobs=2000, users=20, seed=0, *, waits=True):
    """Return jobs of users with a few programs of typical run times, and far higher round limits."""
    draw = np.random.default_rng(seed)
    user, program = draw.integers(users, size=jobs), draw.integers(3, size=jobs)
    typical = np.exp(draw.normal(7, 1.5, (users, 3)))
    run = np.ceil(typical[user, program] * draw.lognormal(0, 0.2, jobs))
    limit = 3600 * np.ceil(typical * draw.uniform(3, 10, (users, 3)) / 3600)[user, program]
    size = 2 ** draw.integers(0, 4, (users, 3))[user, program]
    more = {
        "user": user.astype(float),
        "requested_time": limit,
        "wait_time": np.floor(draw.exponential(100, jobs)) if waits else np.full(jobs, -1.0),
        "used_memory": np.ceil(typical[user, program]),
        "requested_memory": np.ceil(typical[user, program]) * 4,
    }
    submit = np.cumsum(np.ceil(draw.exponential(600, jobs)))
    return Workload("habits", np.arange(1, jobs + 1), submit, np.minimum(run, limit), limit, size, more=more)
