"""What --auto chooses is what its flags, and its sidecar, lead to: byte for byte. auto_repeats.py FOLDER MODEL FLAGS...: prints the plan that was chosen."""
import filecmp, re, subprocess, sys

folder, model, flags = sys.argv[1], sys.argv[2], sys.argv[3:]


def compile(*more):
    run = subprocess.run(["hpc-opt", model, *more], capture_output=True, text=True)
    assert run.returncode == 0, (more, run.stderr)
    return run.stdout


said = compile(*flags, "--auto", "--spec=none", f"--write-spec={folder}/chosen.json", "-o", f"{folder}/auto.plan")
assert compile(*flags, "--auto", "--spec=none", "-o", f"{folder}/twice.plan") == said, "another answer"
assert filecmp.cmp(f"{folder}/auto.plan", f"{folder}/twice.plan", shallow=False), "another plan"
chosen = re.match(r"chosen: (.*) \([\d.]+ [mu]?s a step, .* a rank\)\n", said).group(1)
own = [flag for flag in flags if not flag.startswith("--devices")]
compile(*(flag for flag in own if flag not in chosen.split()), *chosen.replace("--spec=FILE", f"--spec={folder}/chosen.json").split(), *([] if "--spec" in chosen else ["--spec=none"]), "-o", f"{folder}/flags.plan")
assert filecmp.cmp(f"{folder}/auto.plan", f"{folder}/flags.plan", shallow=False), f"another plan by {chosen}"
compile(*own, f"--spec={folder}/chosen.json", "-o", f"{folder}/spec.plan")
assert filecmp.cmp(f"{folder}/auto.plan", f"{folder}/spec.plan", shallow=False), f"another plan by the sidecar of {chosen}"
print("repeated", chosen)
