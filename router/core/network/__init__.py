"""Links between routers: addresses whose receivers are at other routers, and multicast trees.

May import all of `router.core` except `forwarding` and `diagnosis`.
"""
