"""Lookup tables: addresses, patterns, exchanges, redirects, and names of nodes and links.

Deliveries are not known here. May import `model` and `routers` of `router.core`.
"""
