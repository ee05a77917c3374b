"""Jobs whose speed depends on their placement and on the jobs with which they share links, under the usual policies."""
