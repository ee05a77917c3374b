"""What jobs and nodes are known to do: schema, store, probes, library. Imports `simulate` only."""
