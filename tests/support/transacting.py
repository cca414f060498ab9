"""Transactions of Proton, step by step: declare, commit or roll back, with the answers."""

from __future__ import annotations

from typing import Any

from proton.handlers import TransactionHandler

from support.proton_peers import ProtonConnection, ProtonSender, Sent


class Transacting(TransactionHandler):
    """Transaction on a connection. `said` has the coordinator's answers so far."""

    def __init__(self, client: ProtonConnection) -> None:
        super().__init__()
        self.client = client
        self.said: list[str] = []
        self.declared: Any = client.peers.container.declare_transaction(client.endpoint, self)

    @property
    def control(self) -> Any:
        """Return the link to the coordinator, which all transactions of a connection share."""
        return self.declared.txn_ctrl

    def wait(self, what: str) -> None:
        """Wait until the coordinator says this, and nothing else."""
        self.client.peers.until(lambda: self.said, f"the transaction is {what}")
        assert self.said.pop(0) == what

    def begin(self) -> Transacting:
        """Wait until it is declared."""
        self.wait("declared")
        return self

    def send(self, sender: ProtonSender, message: Any) -> Sent:
        """Send a message under this transaction."""
        sender.wait_for_credit()
        return sender.follow(self.declared.send(sender.link, message))

    def accept(self, delivery: Any) -> None:
        """Accept a received message under this transaction."""
        self.declared.accept(delivery)

    def commit(self) -> None:
        """Commit, and wait for the word."""
        self.declared.commit()
        self.wait("committed")

    def abort(self) -> None:
        """Roll back, and wait for the word."""
        self.declared.abort()
        self.wait("aborted")

    # What proton calls.

    def on_transaction_declared(self, event: Any) -> None:
        """See `said`."""
        self.said.append("declared")

    def on_transaction_committed(self, event: Any) -> None:
        """See `said`."""
        self.said.append("committed")

    def on_transaction_aborted(self, event: Any) -> None:
        """See `said`."""
        self.said.append("aborted")

    def on_transaction_declare_failed(self, event: Any) -> None:
        """See `said`."""
        self.said.append("not declared")

    def on_transaction_commit_failed(self, event: Any) -> None:
        """See `said`."""
        self.said.append("not committed")
