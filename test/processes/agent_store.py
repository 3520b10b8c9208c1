"""Stands in for the store that a torchrun agent serves at MASTER_PORT (torch's TCPStore), for tests without torch: the queries that torch's own client
and server were seen to exchange (torch 2.15, libuv and not). `torchrun.py` tries the real one.

  0 magic           validate, once           3 key         get: length and value        6 count keys  wait: 0 when all are there
  1 key value       set                      5 count keys  check: 0 all there, else 1   13 nonce      ping: the nonce
Texts follow their length in 8 bytes, numbers are little endian, and an unknown query ends the connection."""
import socket
import struct
import threading

MAGIC = 0x3C85F7CE


class AgentStore:
    """`knows_ping`: a store of before torch 2.4 does not."""

    def __init__(self, address="127.0.0.1", knows_ping=True):
        self.knows_ping = knows_ping
        self.values = {}
        self.changed = threading.Condition()
        self.listener = socket.create_server((address, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # accept() would hold it open
        self.listener.close()

    def variables(self, rank, count, run="job", agents=1, address="127.0.0.1"):
        """The variables that its torchrun sets for a worker."""
        return {"RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank % (count // agents)), "LOCAL_WORLD_SIZE": str(count // agents),
                "GROUP_RANK": str(rank // (count // agents)), "GROUP_WORLD_SIZE": str(agents), "MASTER_ADDR": address, "MASTER_PORT": str(self.port),
                "TORCHELASTIC_RUN_ID": run, "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        stream = connection.makefile("rb")

        def number(kind):
            return struct.unpack("<" + kind, stream.read(struct.calcsize(kind)))[0]

        def text():
            return stream.read(number("Q"))

        try:
            if (number("B"), number("I")) != (0, MAGIC):
                return
            while True:
                query = number("B")
                if query == 1:
                    key, value = text(), text()
                    with self.changed:
                        self.values[key] = value
                        self.changed.notify_all()
                elif query == 3:
                    value = self.values[text()]
                    connection.sendall(struct.pack("<Q", len(value)) + value)
                elif query in (5, 6):
                    keys = [text() for _ in range(number("Q"))]
                    with self.changed:
                        if query == 6:
                            self.changed.wait_for(lambda: all(key in self.values for key in keys))
                        connection.sendall(bytes([not all(key in self.values for key in keys)]))
                elif query == 13 and self.knows_ping:
                    connection.sendall(stream.read(4))
                else:
                    return
        except (struct.error, OSError, KeyError):
            pass  # it has hung up
        finally:
            connection.close()
