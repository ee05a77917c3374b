"""Carry out sweeps: in processes of this machine or on a Dask cluster, with a journal, so that no run is done twice.

Rule: a worker gets all that a run needs and returns numbers; the caller stores them.
"""
