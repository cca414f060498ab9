"""Links between routers: addresses whose receivers are at other routers, and multicast trees.

May import everything of `router.core` but `forwarding` and `diagnosis`.
"""
