"""File formats: readers and writers of clusters, workflows, workloads, plans and results."""
