"""What kernel-cache.test does to folders of kept code, and asks of them.

  kernel_cache.py same-files A B             # the same entries, and none of B was written after A
  kernel_cache.py same-content A B           # B has every entry of A, byte for byte, and nothing that is no entry
  kernel_cache.py grown-less-than-half A B   # B has the entries of A, and less than half as many others
  kernel_cache.py damage A                   # every entry, each in one of five ways
  kernel_cache.py at-once FOLDER COMMAND...  # three at a time, writing FOLDER/0.plan, 1.plan and 2.plan
"""
import os
import subprocess
import sys


def entries(folder):
    return {name: os.path.join(folder, name) for name in sorted(os.listdir(folder))}


def content(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def same_files(first, second):
    assert entries(first).keys() == entries(second).keys() and entries(first)
    for name, path in entries(first).items():
        assert os.stat(path).st_mtime_ns == os.stat(entries(second)[name]).st_mtime_ns, name


def same_content(first, second):
    others = entries(second)
    assert entries(first) and all(name.endswith(".kernel") for name in others), others
    for name, path in entries(first).items():
        assert content(path) == content(others[name]), name


def grown_less_than_half(first, second):
    before, after = entries(first).keys(), entries(second).keys()
    assert before <= after and 2 * len(after - before) < len(before), (len(before), len(after))


def damage(folder):
    files = list(entries(folder).values())
    whole = [content(path) for path in files]
    for number, (path, data) in enumerate(zip(files, whole)):
        bad = [data[:-1], b"", data[:20], data[:-5] + bytes([data[-5] ^ 1]) + data[-4:], whole[number - 1]][number % 5]
        write(path, bad)
    assert len(files) > 5


def at_once(folder, *command):
    running = [subprocess.Popen([*command, "-o", os.path.join(folder, f"{number}.plan")]) for number in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]


actions = [same_files, same_content, grown_less_than_half, damage, at_once]
{action.__name__.replace("_", "-"): action for action in actions}[sys.argv[1]](*sys.argv[2:])
