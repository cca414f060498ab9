"""Forwarding: addresses, who is attached to them, and the way of each delivery between them."""
