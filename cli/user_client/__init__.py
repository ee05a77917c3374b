"""pilotfish for a user on a login node: workflows through the resource manager itself, without a daemon."""
