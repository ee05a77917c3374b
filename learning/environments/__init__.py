"""Worlds in which a policy learns, decision by decision, over the compiled engine."""
