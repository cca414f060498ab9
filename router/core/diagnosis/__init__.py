"""Reasons why messages do not flow: blocked links, stuck receivers and stuck deliveries.

May read all of `router.core`. Changes nothing, except that it detaches stuck receivers.
"""
