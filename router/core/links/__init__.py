"""Life of a link at the router: attach, detach, resume, steal, auto-links and refusals.

May import all of `router.core` except `network`, `forwarding` and `diagnosis`.
"""
