"""Qpid Proton as a container that a router forwards links to: it takes whatever is attached."""

from __future__ import annotations

from typing import Any

from support.proton_peers import ProtonConnection, ProtonPeers, ProtonReceiver, ProtonSender


class ProtonContainer(ProtonConnection):
    """Connection whose peer attaches the links; `senders` and `receivers` are ours, in order.

    With `refuses` every attach is answered with this condition. `options` are those of
    `Container.connect`.
    """

    def __init__(
        self, peers: ProtonPeers, url: str, container_id: str, credit: int = 10, **options: Any
    ) -> None:
        super().__init__(peers)
        self.senders: list[ProtonSender] = []
        self.receivers: list[ProtonReceiver] = []
        self.credit = credit
        self.accept = True
        self.refuses: Any = None
        self.endpoint = peers.container.connect(
            url, handler=self, container_id=container_id, reconnect=False, **options
        )
        peers.adopt(self)
        peers.until(lambda: self.is_open or self.is_lost, "the container is connected")
        assert self.is_open, self.condition

    def on_session_remote_open(self, event: Any) -> None:
        """Answer a begin."""
        event.session.open()

    def on_session_remote_close(self, event: Any) -> None:
        """Answer an end."""
        event.session.close()

    def on_link_remote_open(self, event: Any) -> None:
        """Answer an attach: take the link, or refuse it."""
        link = event.link
        if self.refuses is not None:
            link.open()
            link.condition = self.refuses
            link.close()
            return
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        link.rcv_settle_mode = link.remote_rcv_settle_mode
        link.snd_settle_mode = link.remote_snd_settle_mode
        ours: Any
        if link.is_sender:
            if link.remote_source.dynamic:
                link.source.address = "made/here"
            ours = ProtonSender(self.peers)
            self.senders.append(ours)
        else:
            ours = ProtonReceiver(self.peers, self.accept)
            self.receivers.append(ours)
        ours.link = link
        ours.is_attached = True
        link.handler = ours
        link.open()
        if link.is_receiver and self.credit:
            link.flow(self.credit)
