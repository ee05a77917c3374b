"""pilotfish for a user on a login node: workflows over the resource manager itself, without a daemon to talk to."""
