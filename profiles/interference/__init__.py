"""Slowdown of programs that share a node: scores, and factors of pairs."""
