"""The pure core: snapshot types, the DAG, models, engine, policies, forecasts and file formats.

Rule: no clock, no environment, no subprocess, no global random state; only `formats` opens files, and
only those it is handed. (One exception: `kernels.object_cache` keeps compiled code in the user's cache.) It imports
no other room of the project.
"""
