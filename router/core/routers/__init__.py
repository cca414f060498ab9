"""Facts about other routers: their names, routes and properties, and the traffic from them.

May import `router.core.model`. Links to other routers are in `router.core.network`.
"""
