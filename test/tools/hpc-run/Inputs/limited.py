"""limited.py BYTES COMMAND...: runs a command that may make no file larger than so many bytes (ulimit -f counts in blocks)."""
import os
import resource
import sys

limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
os.execvp(sys.argv[2], sys.argv[2:])
