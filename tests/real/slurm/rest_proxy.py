"""A proxy before slurmrestd that breaks answers as `mode` says: "" passes them on whole."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress

MODES = ("cut", "html", "empty", "noise", "closed", "late")


class Proxy:
    """Listens at `url`, and speaks to 127.0.0.1:`port`."""

    def __init__(self, port: int, *, late_s: float = 4.0) -> None:
        self.mode, self._port, self._late_s = "", port, late_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                threading.Thread(target=self._forth, args=(client, server), daemon=True).start()
                threading.Thread(target=self._back, args=(client, server), daemon=True).start()

    def _forth(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                server.sendall(data)
        _end(server)

    def _back(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                client.sendall(self._broken(data))
                if self.mode:
                    break
        _end(client)
        _end(server)

    def _broken(self, data: bytes) -> bytes:
        if self.mode == "cut":
            return data[: len(data) // 2]
        if self.mode == "html":
            page = b"<html><body>It works!</body></html>"
            return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(page), page)
        if self.mode == "empty":
            return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        if self.mode == "noise":
            return b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + os.urandom(500)
        if self.mode == "closed":
            return b""
        if self.mode == "late":
            time.sleep(self._late_s)
        return data


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
