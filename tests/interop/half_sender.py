"""A proton client that sends the first half of a message, says so, and goes no further.

Run with a URL, an address, and how many octets the halves have together.
"""

from __future__ import annotations

import sys

from proton import Endpoint
from proton.reactor import Container

url, address, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
container = Container()
container.timeout = 0.05
container.start()
connection = container.connect(url, reconnect=False)
sender = container.create_sender(connection, address)
while not sender.credit:
    container.process()
sender.delivery(sender.delivery_tag())
# A data section that promises all of its octets.
sender.stream(b"\x00\x53\x75\xb0" + size.to_bytes(4, "big") + bytes(size // 2))
while sender.session.outgoing_bytes:
    container.process()
print("half", flush=True)
while connection.state & Endpoint.LOCAL_ACTIVE:
    container.process()
