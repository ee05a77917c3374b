"""The model: platforms, jobs, workloads, plans and snapshots as frozen values."""
