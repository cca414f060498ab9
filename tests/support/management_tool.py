"""Dispatch's management client, by Proton: one request at a time."""

from __future__ import annotations

from typing import Any

from proton import Message
from proton.utils import BlockingConnection, SyncRequestResponse

from support.routers import RouterProcess

P = "org.apache.qpid.dispatch."
PATIENCE_S = 60.0


class Tool:
    """Dispatch's management client, on a connection of its own.

    `url` names another listener than the router's first.
    """

    def __init__(
        self, router: RouterProcess, address: str = "$management", *, url: str | None = None
    ) -> None:
        self.connection = BlockingConnection(url or router.url(), timeout=PATIENCE_S)
        self.client = SyncRequestResponse(self.connection, address)

    def ask(self, body: Any = None, **properties: Any) -> Any:
        """Send a request and wait for the answer, a Message."""
        request = Message(body={} if body is None else body, properties=properties)
        return self.client.call(request)

    def status(self, body: Any = None, **properties: Any) -> int:
        """Send a request and return the status code of its answer."""
        return int(self.ask(body, **properties).properties["statusCode"])

    def query(self, kind: str, *names: str, **page: int) -> list[dict[str, Any]]:
        """Return all entities of a type."""
        properties = {"operation": "QUERY", "entityType": P + kind, **page}
        node = {"type": "org.amqp.management", "name": "self"}
        answered = self.ask({"attributeNames": list(names)}, **properties, **node)
        assert answered.properties["statusCode"] == 200
        assert answered.properties["statusDescription"] == "OK"
        body = answered.body
        return [dict(zip(body["attributeNames"], row, strict=True)) for row in body["results"]]

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()
