"""Small AMQP client on the router's own engine: connect, send, receive, and manage routers."""

from router.amqp.message import AmqpSequence, AmqpValue, Data, Header, Message, Properties
from router.amqp.performatives import Accepted, Modified, Rejected, Released
from router.client.connection import ClientConnection, connect
from router.client.failures import ClientError, ConnectFailed, ConnectionLost, LinkLost
from router.client.management import (
    ManagementClient,
    NoResponse,
    RequestRefused,
    connect_management,
    open_management,
)
from router.client.receiver import ReceivedMessage, Receiver
from router.client.sender import Sender, SentMessage
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
    "NoResponse",
    "Properties",
    "ReceivedMessage",
    "Receiver",
    "Rejected",
    "Released",
    "RequestRefused",
    "Sender",
    "SentMessage",
    "Url",
    "connect",
    "connect_management",
    "open_management",
    "parse_url",
]
