"""Files that a replay reads and writes: workloads, machines, sweeps, results."""
