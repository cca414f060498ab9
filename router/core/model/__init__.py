"""Data that forwarding works on: addresses, queues of deliveries, counters and outcomes.

May import `router.amqp` and `router.engine`, and nothing else of `router.core`.
"""
