"""Rules of the code base, as functions from a source tree to a list of offences.

Each checker takes the tree's root and returns lines such as `router/amqp/x.py:12: imports
router.net`; an empty list is a pass. tests/rules applies each one to this tree, and to a bad sample
that it must refuse.
"""
