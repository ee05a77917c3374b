"""The kernel that parses the Standard Workload Format."""
