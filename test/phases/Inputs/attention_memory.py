"""Bytes of a plan that is one attention of 12 heads, or its gradient, with and without dropout, at 1 x 2048 and 1 x 4096: attention_memory.py BIN FOLDER.
Twice the positions take twice the bytes; scores or a mask in memory would take four times as many."""
import json, subprocess, sys

BIN, FOLDER = sys.argv[1:]


def program(positions, gradient, dropout):
    t = f"tensor<1x12x{positions}x64xf32>"
    names = ["q", "k", "v"] + ["g"] * gradient
    arguments = ", ".join(f'%{name}: {t} {{nn.name = "{name}"}}' for name in names)
    operands, attributes = ", ".join("%" + name for name in names), "scale = 0.125 : f64, causal_offset = 0 : i64"
    if dropout:
        arguments += "".join(f', %{name}: tensor<f64> {{nn.step_scalar = "{name}"}}' for name in ("step", "seed"))
        operands += " dropout %step, %seed : tensor<f64>, tensor<f64>"
        attributes += ", site = 0 : i64, rate = 0.1 : f64"
    results = ", ".join(f'{t} {{nn.name = "r{i}"}}' for i in range(3 if gradient else 1))
    types = ", ".join([t] * len(names)) + " -> " + ", ".join([t] * (3 if gradient else 1))
    returned = "%r#0, %r#1, %r#2 : " + ", ".join([t] * 3) if gradient else f"%r : {t}"
    return (f'module attributes {{hpc.phase = "raise"}} {{\nfunc.func @main({arguments}) -> ({results}) {{\n'
            f'  {"%r:3 = nn.attention_grad" if gradient else "%r = nn.attention"} {operands} '
            f'{{{attributes}}} : {types}\n  return {returned}\n}}\n}}\n')


for gradient, dropout in ((False, False), (True, False), (False, True), (True, True)):
    total = []
    for positions in (2048, 4096):
        with open(f"{FOLDER}/p.mlir", "w") as file:
            file.write(program(positions, gradient, dropout))
        subprocess.run([f"{BIN}/hpc-opt", f"{FOLDER}/p.mlir", "-o", f"{FOLDER}/p.plan"], check=True)
        plan = subprocess.run([f"{BIN}/hpc-plan", f"{FOLDER}/p.plan", "--json"], check=True, capture_output=True, text=True).stdout
        total.append(json.loads(plan)["stages"][0]["memory_per_rank"]["total"])
    print("gradient" if gradient else "forward", "with dropout" if dropout else "", *total)
    assert total[1] <= 2.01 * total[0], "more than linear in the positions"
