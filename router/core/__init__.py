"""Forwarding: addresses, the links attached to them, and the path of each delivery."""
