"""Runs a command twice at once, as process 0 and 1 of two, on a free port of this machine; fails if one does.

  two_processes.py COMMAND ARGUMENT...
"""
import os
import socket
import subprocess
import sys

with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
launch = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
both = [subprocess.Popen(sys.argv[1:], env={**os.environ, **launch, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in (0, 1)]
sys.exit(any([process.wait(120) for process in both]))
