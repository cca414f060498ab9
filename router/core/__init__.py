"""Forwarding: addresses, the links attached to them, and the path of each delivery between them.

The packages below import downwards only, in this order (tests/rules):
model, routers, addresses, deliveries, link_routes, links, network, forwarding, diagnosis.
A message passes through `forwarding` and `deliveries`; the others run when links or routes change.
"""
