"""Planning: when to plan, the problem of the moment, the jobs and nodes that a plan considers, and the last plan."""
