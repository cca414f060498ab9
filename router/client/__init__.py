"""Small AMQP client on the router's own engine: connect, send, receive, and manage routers."""

from router.amqp.message import AmqpSequence, AmqpValue, Data, Header, Message, Properties
from router.amqp.performatives import Accepted, Modified, Rejected, Released
from router.client.connection import ClientConnection, connect
from router.client.failures import ClientError, ConnectFailed, ConnectionLost, LinkLost
from router.client.management import (
    ManagementClient,
    NoAnswer,
    RequestRefused,
    connect_management,
    open_management,
)
from router.client.receiver import Received, Receiver
from router.client.sender import Sender, Sending
from router.client.url import Url, parse_url

__all__ = [
    "Accepted",
    "AmqpSequence",
    "AmqpValue",
    "ClientConnection",
    "ClientError",
    "ConnectFailed",
    "ConnectionLost",
    "Data",
    "Header",
    "LinkLost",
    "ManagementClient",
    "Message",
    "Modified",
    "NoAnswer",
    "Properties",
    "Received",
    "Receiver",
    "Rejected",
    "Released",
    "RequestRefused",
    "Sender",
    "Sending",
    "Url",
    "connect",
    "connect_management",
    "open_management",
    "parse_url",
]
