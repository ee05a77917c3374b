"""Jobs placed on heterogeneous nodes, decision by decision, in many copies at once."""
