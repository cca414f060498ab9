"""Control plane: the network, the edges, link routes and auto-links, off the message path."""
