"""Rules for single deliveries: credit, redelivery, release, size limits, annotations, outcomes.

Forwarding and the code that attaches and detaches links both call these. May import `model`,
`routers` and `addresses` of `router.core`, and no links.
"""
