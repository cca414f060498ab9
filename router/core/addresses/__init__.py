"""Lookup tables: addresses, patterns, exchanges, redirects, and names of nodes and links.

May import `model` and `routers` of `router.core`; nothing here handles deliveries.
"""
