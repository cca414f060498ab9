"""Link routes: patterns, their destinations, and links that are forwarded end to end.

May import `model`, `routers`, `addresses` and `deliveries` of `router.core`.
"""
