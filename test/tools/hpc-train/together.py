"""Runs a command as several processes that a launcher would have started: together.py COUNT COMMAND... Exit status 1 if one of them fails."""
import os
import socket
import subprocess
import sys

with socket.socket() as one:
    one.bind(("127.0.0.1", 0))
    port = str(one.getsockname()[1])
count = int(sys.argv[1])
running = [subprocess.Popen(sys.argv[2:], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
           for rank in range(count)]
sys.exit(any([process.wait() for process in running]))
