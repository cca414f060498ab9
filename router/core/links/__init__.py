"""Life of a link at the router: attach, detach, resume, steal, auto-links and refusals.

May import everything of `router.core` but `network`, `forwarding` and `diagnosis`.
"""
