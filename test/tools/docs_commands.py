#!/usr/bin/env python3
"""Runs every command of README.md, docs/tour.md and docs/tutorials and compares the output that the page shows with the real one.
Links of all pages to files of the repository have to lead somewhere.

  test/tools/docs_commands.py ROOT BUILD [--with=mpi] [--with=pypi=PYTHON] [PAGE...]

A block of commands begins with ```console. A line `$ COMMAND` is run (it goes on after a `\\` at its end, and in lines that begin
with `> `), the lines below are its stdout and stderr; a line `...` stands for any lines. A command without output has to succeed, one that shows `error[` has to fail.
A word after `console` says what the block needs: `mpi` and `pypi` are run with --with, `slow` with HPC_TEST_ALL, of `setup` only the syntax is checked.
In a `long` one hpc-train makes three steps, and no output is compared.
Pages write below /tmp/hpc; here a folder of this run takes its place. Numbers of time, of rounding errors and of values that
--verify compared are masked, as are the time at the begin of a line and MFU; other numbers with a fraction have to agree within 0.1%."""
import os
import re
import shlex
import subprocess
import sys
import tempfile

PROGRAMS = re.compile(r"(^|\s|/)(hpc-opt|hpc-run|hpc-train|hpc-generate|hpc-plan|hpc-calibrate) \S|^\s*(\$ )?tools/\S+\.sh")
TIME = re.compile(r"^\[\d{4}-\d\d-\d\d [\d:,]+\]|\bMFU [\d.]+%")
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
MASKED = re.compile(r"\s?(ms|us|s|sec|step/s|tokens/s|GFLOP/s|GB/s)\b|\s?(of (the bound|the largest)|values of all|buffers;)")


def blocks(text):
    """(line, words of the fence, lines) of each fenced block; what stands outside has an empty fence."""
    fence, start, lines = None, 1, []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            yield start, fence, lines
            fence, start, lines = (line[3:].split() if fence is None else None), number + 1, []
        else:
            lines.append(line)
    yield start, fence, lines


def dead_links(root):
    """PAGE:LINE: LINK of each relative link that names no file."""
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "build"))]
        for name in files:
            if not name.endswith(".md"):
                continue
            page = os.path.join(folder, name)
            with open(page, encoding="utf-8") as text:
                for number, line in enumerate(text, 1):
                    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
                        if "://" not in link and not os.path.exists(os.path.join(folder, link)):
                            yield f"{os.path.relpath(page, root)}:{number}: there is no {link}"


def commands(lines):
    """(command, lines of its output)"""
    found = []
    for line in lines:
        if found and found[-1][0].endswith("\\"):
            found[-1][0] = found[-1][0][:-1] + line.strip()
        elif found and line.startswith("> "):
            found[-1][0] += "\n" + line[2:]
        elif line.startswith("$ "):
            found.append([line[2:], []])
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError(f"output without a command: {line}")
    return found


def agrees(shown, real):
    """Whether two lines are the same but for spaces and what is not compared."""
    shown, real = TIME.sub("TIME", shown), TIME.sub("TIME", real)
    if NUMBER.sub("#", " ".join(shown.split())) != NUMBER.sub("#", " ".join(real.split())):
        return False
    for one, other in zip(NUMBER.finditer(shown), NUMBER.finditer(real)):
        if one.group() == other.group() or MASKED.match(shown, one.end()):
            continue
        if not re.search(r"[.e]", one.group()):
            return False
        want, got = (float(text.group().replace(",", "")) for text in (one, other))
        if abs(want - got) > 1e-3 * abs(want):
            return False
    return True


def matches(shown, real):
    """The lines of `real` in the order of `shown`, where `...` skips any of them."""
    if not shown:
        return not real
    if shown[0].strip() == "...":
        return any(matches(shown[1:], real[i:]) for i in range(len(real) + 1))
    return bool(real) and agrees(shown[0], real[0]) and matches(shown[1:], real[1:])


def main():
    root, build, *options = sys.argv[1:]
    tutorials = sorted(os.listdir(os.path.join(root, "docs", "tutorials")))
    pages = [option for option in options if not option.startswith("--")] or ["README.md", "docs/tour.md", *[f"docs/tutorials/{name}" for name in tutorials]]
    wanted = dict((option[len("--with="):] + "=").split("=")[:2] for option in options if option.startswith("--"))
    if os.environ.get("HPC_TEST_ALL"):
        wanted["slow"] = ""
    ran, failed = 0, 0
    for link in dead_links(root):
        print(link)
        failed += 1
    with tempfile.TemporaryDirectory() as work:
        for name in ("models", "LICENSE"):
            os.symlink(os.path.join(root, name), os.path.join(work, name))
        os.symlink(build, os.path.join(work, "build"))
        os.mkdir(os.path.join(work, "out"))
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                           HF_HUB_OFFLINE="1", LLVM_DISABLE_SYMBOLIZATION="1")
        for page in pages:
            for start, fence, lines in blocks(open(os.path.join(root, page), encoding="utf-8").read()):
                if fence is None or fence[:1] != ["console"]:
                    for number, line in enumerate(lines, start):
                        if PROGRAMS.search(line) and (fence is not None or line.startswith("    ")):
                            print(f"{page}:{number}: a command outside of a ```console block is never run: {line}")
                            failed += 1
                    continue
                needs = fence[1:]
                if any(need not in wanted and need not in ("setup", "long") for need in needs):
                    continue
                for command, shown in commands(lines):
                    ran += 1
                    if "setup" in needs:
                        script = shlex.split(command, comments=True)[0]
                        if subprocess.run(["bash", "-n", os.path.join(root, script)], check=False).returncode:
                            print(f"{page}:{start}: {script} is no shell script that bash can read")
                            failed += 1
                        continue
                    text = command.replace("/tmp/hpc", os.path.join(work, "out"))
                    if wanted.get("pypi"):
                        text = re.sub(r"^python3 ", wanted["pypi"] + " ", text)
                    if "long" in needs:
                        shown = []
                        text = re.sub(r"(hpc-train .*)", r"\1 --steps=3", text)
                    result = subprocess.run(["bash", "-c", text], cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                            text=True, timeout=300, check=False)
                    real = result.stdout.replace(os.path.join(work, "out"), "/tmp/hpc").rstrip("\n").split("\n") if result.stdout.strip() else []
                    while shown and not shown[-1].strip():
                        shown.pop()
                    fails = any("error[" in line for line in shown)
                    if (result.returncode != 0) != fails or (shown and not matches(shown, real)):
                        print(f"{page}:{start}: $ {command}\nexit status {result.returncode}, and the output is not what the page shows:")
                        print("\n".join(real))
                        failed += 1
    print(f"{ran} commands, {failed} failures")
    sys.exit(failed > 0 or ran == 0)


if __name__ == "__main__":
    main()
