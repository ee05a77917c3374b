"""The views of the pages for browsers, in a terminal."""
