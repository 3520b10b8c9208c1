"""Completion of the tools in bash: words as readline cuts them, with a word of its own for each '=', and what is offered for the last one."""
import os
import subprocess
import sys
import tempfile

CASES = [
    ("hpc-opt", ["--micro"], ["--micro-batches="]),
    ("hpc-opt", ["m.onnx", "--pp"], ["--pp=", "--pp-chunks=", "--pp-schedule=", "--pp-split="]),
    ("hpc-opt", ["--train", "--nest"], ["--nesterov"]),
    ("hpc-opt", ["--expl"], ["--explain", "--explain="]),
    ("hpc-opt", ["--optimizer", "=", "ada"], ["adam", "adamw"]),
    ("hpc-opt", ["--optimizer", "="], ["adam", "adamw", "lamb", "sgd"]),
    ("hpc-opt", ["--optimizer", "sg"], ["sgd"]),  # --optimizer sgd
    ("hpc-opt", ["--optimizer=ada"], ["--optimizer=adam", "--optimizer=adamw"]),  # where '=' cuts no word, as in zsh
    ("hpc-opt", ["--compile-to", "=", "p"], ["partition", "precision", "propagate"]),
    ("hpc-opt", ["--explain", "=", ""], ["json", "layouts"]),
    ("hpc-opt", ["--explain", "m"], ["made.onnx", "made.plan", "many folders"]),  # its value stands after '=' alone
    ("hpc-opt", ["--verify", "=", "in"], ["inputs 1.npz"]),
    ("hpc-opt", ["--schedule", "=", "z"], ["zb-h1"]),
    ("hpc-opt", ["-o", "made.p"], ["made.plan"]),
    ("hpc-opt", ["--dump-phases", "=", "ma"], ["many folders"]),
    ("hpc-opt", ["--tp", "=", "2"], []),
    ("hpc-opt", ["--tp", "=", "2", "made.o"], ["made.onnx"]),
    ("hpc-run", ["p.plan", "--lr"], ["--lr-by=", "--lr-power=", "--lr-schedule=", "--lr-steps=", "--lr="]),
    ("hpc-run", ["--backend", "=", ""], ["cuda", "host", "null"]),
    ("hpc-run", ["--tp"], []),
    ("hpc-plan", ["--"], ["--bandwidth=", "--check", "--config=", "--help", "--help=", "--json", "--kernels", "--ptx"]),
    ("hpc-plan", ["--help", "=", "m"], ["man"]),
]
folder = tempfile.mkdtemp(dir=sys.argv[1])
for name in ("made.onnx", "made.plan", "inputs 1.npz"):
    open(os.path.join(folder, name), "w").close()
os.mkdir(os.path.join(folder, "many folders"))
script = "compopt() { :; }\n"  # readline alone has one
for tool in ("hpc-opt", "hpc-run", "hpc-plan"):
    script += subprocess.run([tool, "--help=bash"], capture_output=True, text=True, check=True).stdout
for tool, words, _ in CASES:
    given = " ".join("'" + word + "'" for word in [tool, *words])
    script += f"COMP_WORDS=({given}); COMP_CWORD={len(words)}; COMPREPLY=(); _{tool.replace('-', '_')}; printf '%s;' \"${{COMPREPLY[@]}}\"; echo\n"
run = subprocess.run(["bash", "--norc", "-u", "-c", script], capture_output=True, text=True, cwd=folder)
assert run.returncode == 0 and not run.stderr, run.stderr
lines = run.stdout.splitlines()
assert len(lines) == len(CASES), run.stdout
for (tool, words, expected), line in zip(CASES, lines):
    offered = sorted(filter(None, line.split(";")))
    assert offered == sorted(expected), (tool, words, offered, expected)
registered = subprocess.run(["bash", "--norc", "-c", script + "complete -p hpc-opt hpc-run hpc-plan"], capture_output=True, text=True, cwd=folder, check=True).stdout
assert registered.splitlines()[-3:] == [f"complete -F _hpc_{name} hpc-{name}" for name in ("opt", "run", "plan")], registered
print(len(CASES), "completions")
