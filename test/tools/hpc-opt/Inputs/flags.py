"""Holds `hpc-opt --help` (first argument: the text) against the flags that the source declares (second: CommandLine.cpp)."""
import re, subprocess, sys

help_text, source = open(sys.argv[1]).read(), open(sys.argv[2]).read()
lines = help_text.splitlines()
assert len(lines) <= 67, f"--help has {len(lines)} lines: it no longer fits on a screen"
assert max(map(len, lines)) <= 120, f"too wide: {max(lines, key=len)}"

flags = [name for name in re.findall(r'cl::(?:opt|list|bits)<[\w:]+>\s+\w+\{\s*"([\w-]+)"', source)]
assert len(flags) >= 16, f"only found {flags} in the source"
for name in flags:
    dashed = ("-" if len(name) == 1 else "--") + name
    entry = [line for line in lines if re.match(rf"  {dashed}(?![\w-])", line)]
    assert len(entry) == 1 and len(entry[0].split("  ")) >= 3, f"{dashed} is not explained by --help: {entry}"

# Beside an .mlir file each of them asks for a compilation; mlir-opt would not know it.
for name in set(flags) - {"o"}:
    run = subprocess.run(["hpc-opt", "/nowhere/none.mlir", f"--{name}"], capture_output=True, text=True)
    assert run.returncode == 1 and "Unknown command line argument" not in run.stderr and "hpc-opt: error[" in run.stderr, f"--{name}: {run.stderr}"
print(len(flags), "flags are explained in", len(lines), "lines")
