"""terminal.py COLUMNS COMMAND...: runs COMMAND in a terminal of that width and prints what it would show, escapes as ESC, \\r as a new line."""
import fcntl
import os
import pty
import struct
import sys
import termios

columns, *command = sys.argv[1:]
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(columns), 0, 0))
    os.execvp(command[0], command)
text = b""
while True:
    try:
        more = os.read(terminal, 65536)
    except OSError:
        break
    if not more:
        break
    text += more
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, text
print(text.decode().replace("\r\n", "\n").replace("\r", "\n").replace("\x1b", "ESC"))
