"""A small AMQP client on the router's own engine: connect, send, receive."""

from router.client.connection import ClientConnection, connect
from router.client.failures import ClientError, ConnectFailed, ConnectionLost, LinkLost
from router.client.receiver import Received, Receiver
from router.client.sender import Sender, Sending
from router.client.url import Url, parse_url

__all__ = [
    "ClientConnection",
    "ClientError",
    "ConnectFailed",
    "ConnectionLost",
    "LinkLost",
    "Received",
    "Receiver",
    "Sender",
    "Sending",
    "Url",
    "connect",
    "parse_url",
]
