"""Sweeps carried out: in processes of this machine or on a Dask cluster, journalled, so that none is done twice.

Rule: a worker is given all that a run needs and gives back numbers; what is kept is the caller's.
"""
