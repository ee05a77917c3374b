"""Worlds of a replay: what is simulated of jobs and machine, each driven by a compiled or a Python policy."""
