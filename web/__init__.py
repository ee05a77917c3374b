"""A page for browsers that shows the cluster, its queue and its future, in a process of its own next to the service."""
