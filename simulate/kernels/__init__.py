"""Compiled kernels: the hot loops over tables (structured arrays) that the planner and the replay build.

Rule: numbers in, numbers out; no Python objects and no allocation inside a simulation. `object_cache` loads the
compiled functions. The modules that hold the loops are imported only to compile them.
"""
