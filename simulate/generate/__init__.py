"""Synthetic workloads and workflows, drawn from published models with a seed.

Rule: the same options and seed give the same bytes on any machine; values are rounded before anything depends on the
last bit of a mathematical library.
"""
