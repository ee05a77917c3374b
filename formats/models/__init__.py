"""The kinds of learned policies in files: the weights of an order, or a network that scores pairs."""
