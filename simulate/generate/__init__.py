"""Workloads that are made up: drawn from models of the field, from a seed.

Rule: same options and seed, same bytes, on any machine: where mathematical libraries differ in a last bit, it is
rounded away before anything rests on it.
"""
