"""Runs plugins: what they see of the router, and how the router is protected from them."""
