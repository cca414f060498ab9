"""Control plane, off the message path: routing protocol, edges, link routes and auto-links."""
