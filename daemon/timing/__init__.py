"""When the service looks at the resource manager, and when it plans."""
