"""Kernels of DESiDE's interval simulation."""
