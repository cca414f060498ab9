"""Rules for single deliveries: credit, redelivery, release, size limits, annotations, outcomes.

Both forwarding and the code that attaches and detaches links call these. May import `model`,
`routers` and `addresses` of `router.core`, and no links.
"""
