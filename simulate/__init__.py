"""The pure core: values of the model, contention, policies, planning, replay, workload generators, compiled kernels.

Rule: no clock, no file, no environment, no subprocess, no global random state, and no import of another room. (One
exception: `kernels.object_cache` keeps compiled code in the user's cache.)
"""
