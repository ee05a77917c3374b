"""Records: what a daemon saw of a site, cycle by cycle, so that its own loop can run on it again."""
