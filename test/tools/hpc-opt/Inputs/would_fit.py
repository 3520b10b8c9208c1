"""The error of --auto where nothing fits, and the plans of --auto with what it says would do: would_fit.py MODEL FLAGS..."""
import re, subprocess, sys


def ask(*more):
    return subprocess.run(["hpc-opt", *sys.argv[1:], "--auto", *more], capture_output=True, text=True)


def chosen(*more):
    run = ask(*more)
    assert run.returncode == 0, (more, run.stderr)
    return re.match(r"chosen: (.*) \(", run.stdout).group(1)


refused = ask("--devices=4", "--memory=24GiB")
assert refused.returncode == 1, refused
print(refused.stderr, end="")
memory, devices = re.search(r"--memory=\d+", refused.stderr).group(), re.search(r"--devices=\d+", refused.stderr).group()
print("with that memory:", chosen("--devices=4", memory))
print("with as many devices:", chosen(devices, "--memory=24GiB"))
