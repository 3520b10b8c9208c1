"""Compiles a model with every sidecar of a folder: each is refused with the message that its last line, "= TEXT", gives, and with nothing else.
wrong.py FOLDER MODEL [FLAGS...]"""
import pathlib, subprocess, sys

folder, model, flags = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
files = sorted(folder.glob("*.json"))
assert len(files) >= 5, files
for file in files:
    text, wanted = file.read_text().rsplit("\n= ", 1)
    file.write_text(text[text.index("{"):])
    run = subprocess.run(["hpc-opt", model, f"--spec={file}", "--tp=2", "--dim", "batch_size=2", "--dim", "sequence_length=16", "--compile-to=stage", *flags],
                         capture_output=True, text=True)
    assert run.returncode == 1 and not run.stdout, (file.name, run.returncode, run.stderr)
    assert run.stderr.replace(str(folder) + "/", "") == f"hpc-opt: error[sidecar]: {wanted.strip()}\n", f"{file.name}:\n  {run.stderr}  {wanted}"
