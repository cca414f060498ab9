"""TLS (section 5.2): certificates and contexts of profiles, and the TLS layer of one connection.

Nothing here reads or writes a socket: `router.net.pump` passes octets to a `TlsChannel` and takes
octets from it.
"""
