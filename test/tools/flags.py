"""flags.py SOURCE AXES: whether each flag of the table (FlagTable.cpp, and MeshDegrees.cpp for the axes) stands with its group and help in --help, in the
manual page and in the completion of the tools that have it, and no tool prints another."""
import re
import subprocess
import sys

TOOLS = {"HpcOpt": "hpc-opt", "HpcRun": "hpc-run", "HpcPlan": "hpc-plan", "HpcCalibrate": "hpc-calibrate", "HpcGenerate": "hpc-generate"}
ROW = re.compile(r'^      \{"([\w-]+)",(.*?), (AllTools|Hpc\w+(?: \| Hpc\w+)*)(?:, "([\w-]+)")?\},$', re.M | re.S)


def page(tool, kind):
    return subprocess.run([tool, f"--help={kind}"], capture_output=True, text=True, check=True).stdout


def flags_of_help(text):
    """name -> (group, help) of --help"""
    group, name, found = None, None, {}
    for line in text.split("For example\n")[1].splitlines()[1:]:
        entry = re.match(r"  (?:--?[\w-]+, )?(-?-?[\w-]+)\S*(?: [A-Z|]\S*)?  +(\S.*)$", line)
        if not line or line[0] != " ":
            group, name = line, None
        elif entry and group and not line.startswith("   "):
            name = entry.group(1)
            found[name] = (group, entry.group(2))
        elif name:
            found[name] = (group, found[name][1] + " " + line.strip())
    return found


source, axes = (open(path).read() for path in sys.argv[1:])
rows = [(name, tools, alias, ".positional()" in rest) for name, rest, tools, alias in ROW.findall(source)]
rows += [(name, "HpcOpt" if role == "Sequence" else "HpcOpt | HpcGenerate", "", False) for role, name in re.findall(r'AxisRole::(\w+), "([\w-]+)"', axes)]
assert len(rows) > 80, len(rows)
for key, tool in TOOLS.items():
    listed = {name: (alias, positional) for name, tools, alias, positional in rows if key in tools or tools == "AllTools"}
    text, manual, completion = page(tool, "text"), page(tool, "man"), page(tool, "bash")
    helped = flags_of_help(text)
    expected = {name.upper() if positional else "--" + name for name, (_, positional) in listed.items()}
    assert set(helped) == expected, (tool, set(helped) ^ expected)
    assert max(map(len, text.splitlines())) <= 120, tool
    for name, (group, words) in helped.items():
        assert re.search("[a-z]", re.sub(r"\(default.*|; may be repeated", "", words)), f"{tool} {name}: no help: {words!r}"
        assert re.search(r"^\.TP\n\\fB.*" + re.escape(name.replace("-", "\\-")) + r"[\\=\[ ].*\n.+\.$", manual, re.M), f"{tool}.1: {name}"
    offered = set(re.search(r"-\*\) ours=\(\$\(compgen -W \$'([^']*)'", completion).group(1).replace("=", "").split("\\n"))
    assert offered == {"--" + other for name, (alias, positional) in listed.items() if not positional for other in (name, alias) if len(other) > 1}, (tool, offered)
    print(f"{tool}: {len(listed)} flags")
