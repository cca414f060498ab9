"""Lookup tables: addresses, patterns, exchanges, redirects, and names of nodes and links.

This package may import `model` and `routers` of `router.core`. No module of it handles deliveries.
"""
