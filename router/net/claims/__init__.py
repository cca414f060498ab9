"""Security tokens that peers put at `$cbs`: their keys, and how tokens are verified.

`router.core.links.cbs` takes the tokens, and `router.core.addresses.claims` decides by them.
"""
