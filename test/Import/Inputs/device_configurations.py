"""ONNX's own multi-device annotations, written by hand: y = Relu(x A) B on grids of devices, right and wrong ones. device_configurations.py FOLDER"""
import json, os, pathlib, subprocess, sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from onnx_file import field, model, node  # noqa: E402

folder = pathlib.Path(sys.argv[1])
random = np.random.default_rng(0)
WEIGHTS = [("A", random.standard_normal((24, 40), dtype=np.float32) / 6), ("B", random.standard_normal((40, 24), dtype=np.float32) / 6)]


def spec(tensor, devices, *dims):
    """A ShardingSpecProto. Devices: a number or a list of them a shard; dims: (axis, (size or None, shards), ...)."""
    listed, groups = b"", b""
    for index, each in enumerate(devices):
        listed += field(2, each if isinstance(each, int) else -1 - index)
        if not isinstance(each, int):
            groups += field(3, field(1, -1 - index) + b"".join(field(2, member) for member in each))
    sharded = b"".join(field(4, field(1, axis) + b"".join(field(2, (field(1, size) if size else b"") + field(3, shards)) for size, shards in parts))
                       for axis, *parts in dims)
    return field(1, tensor) + listed + groups + sharded


def annotated(configurations, **nodes):
    """Writes the model; nodes: output name -> (stage or None, specs...), each under configuration "grid"."""
    def with_devices(op, inputs, output):
        stage, *specs = nodes.get(output, (None,))
        content = field(1, nodes.get("id", "grid")) + b"".join(field(2, each) for each in specs) + (b"" if stage is None else field(3, stage))
        other = b"".join(field(10, field(1, "rows") + field(2, each)) for each in nodes.get("rows", {}).get(output, ()))
        return node(op, inputs, [output]) + (field(10, content) if output in nodes else b"") + other

    graph = [with_devices("MatMul", ["x", "A"], "h"), with_devices("Relu", ["h"], "a"), with_devices("MatMul", ["a", "B"], "y")]
    extra = b"".join(field(26, field(1, name) + field(2, count)) for name, count in configurations)
    (folder / "m.onnx").write_bytes(model(graph, [("x", "f32", [6, 24])], [("y", "f32", [6, 24])], WEIGHTS, ir=11) + extra)


def compile(*flags):
    return subprocess.run(["hpc-opt", str(folder / "m.onnx"), *flags], capture_output=True, text=True)


def means(name, sidecar):
    """The annotations are this sidecar, proved equal, and the plan is that of the sidecar."""
    run = compile(f"--write-spec={folder}/read.json", "--verify", "-o", folder / "a.plan")
    assert run.returncode == 0 and run.stdout.startswith("verified: ") and "taking the annotations of" in run.stderr, (name, run.stdout, run.stderr)
    read = json.loads((folder / "read.json").read_text())
    assert read == {"version": 1, **sidecar}, (name, read)
    run = compile(f"--spec={folder}/read.json", "-o", folder / "b.plan")
    assert run.returncode == 0 and (folder / "a.plan").read_bytes() == (folder / "b.plan").read_bytes(), (name, run.stderr)


def refused(name, message):
    run = compile("-o", folder / "a.plan")
    wanted = f"hpc-opt: error[{message[0]}]: {folder}/m.onnx{message[1]}\n"
    told = "".join(line for line in run.stderr.splitlines(True) if "remark: taking the annotations" not in line)
    assert run.returncode == 1 and told == wanted, f"{name}:\n{told}{wanted}"


def mesh(dp, pp, tp):
    return {"mb": 1, "dp": dp, "pp": pp, "cp": 1, "tp": tp}


# Column, then row, as Megatron cuts them.
annotated([("grid", 2)], h=(None, spec("A", [0, 1], (1, (None, 2)))), y=(None, spec("B", [0, 1], (0, (None, 2)))))
means("pair", {"mesh": mesh(1, 1, 2), "params": [{"match": "A", "shard": [{"dim": 1, "axis": "tp"}]}, {"match": "B", "shard": [{"dim": 0, "axis": "tp"}]}]})
# A batch over one half of the bits of the devices' numbers, weights over the other: the grid follows from the groups.
annotated([("grid", 4)], h=(None, spec("x", [[0, 1], [2, 3]], (0, (None, 2))), spec("A", [[2, 0], [1, 3]], (-1, (None, 2)))))
read_tensor = {"match": "x", "shard": [{"dim": 0, "axis": "dp", "parts": 2}], "optional": True}
means("grid", {"mesh": mesh(2, 1, 2), "params": [{"match": "A", "shard": [{"dim": 1, "axis": "tp"}]}, {"match": "B", "shard": [{"dim": 0, "axis": "tp"}], "inferred": True}],
               "tensors": [read_tensor]})
# Inside a dim: 40 = 5 x 8, the eights in 3.
annotated([("grid", 3)], h=(None, spec("A", [0, 1, 2], (1, (5, 1), (8, 3)))), y=(None, spec("B", [[0, 1, 2]])))
means("inside", {"mesh": mesh(1, 1, 3), "params": [{"match": "A", "shard": [{"dim": 1, "of": [5, 8], "at": 1, "axis": "tp"}]}, {"match": "B", "shard": []}]})
# Stages, each on devices of its own.
annotated([("grid", 4)], h=(0, spec("A", [0, 1], (1, (None, 2)))), a=(0,), y=(1, spec("B", [2, 3], (1, (None, 2)))))
means("stages", {"mesh": mesh(1, 2, 2), "params": [{"match": "A", "shard": [{"dim": 1, "axis": "tp"}]}, {"match": "B", "shard": [{"dim": 1, "axis": "tp"}]}],
                 "stages": [{"match": "h", "stage": 0}, {"match": "y", "stage": 1}]})

WHERE = ": node 'h', device configuration 'grid': "
A = ": sharding_spec of 'A': "
annotated([("grid", 2)], h=(None, spec("B", [0, 1], (1, (None, 2)))))
refused("tensor", ("model", WHERE + "sharding_spec of 'B', which is no input or output of the node"))
annotated([("grid", 2)], h=(None, spec("A", [0, 2], (1, (None, 2)))))
refused("device", ("model", WHERE + A[2:] + "device 2 is neither of 0 to 1 nor a key of index_to_device_group_map"))
annotated([("grid", 2)], h=(None, spec("A", [0, 0], (1, (None, 2)))))
refused("twice", ("model", WHERE + A[2:] + "device 0 holds two shards; a device holds one"))
annotated([("grid", 4)], h=(None, spec("A", [0, 1, 2], (1, (None, 2)))))
refused("count", ("model", WHERE + A[2:] + "it has 2 shards, and 3 devices or groups of devices; give one for each shard"))
annotated([("grid", 2)], h=(None, spec("A", [0, 1], (1, (None, 0)))))
refused("shards", ("model", WHERE + A[2:] + "num_shards of axis 1 is 0; it must be from 1 to the configuration's 2 devices"))
annotated([("grid", 2)], h=(None, spec("A", [0, 1], (1, (None, 1), (8, 2)))))
refused("parts", ("model", WHERE + A[2:] + "axis 1 is cut in several parts, and one has no dim_value; give each its size as a number"))
annotated([("grid", 2)], h=(2,))
refused("stage", ("model", WHERE + "pipeline_stage 2; it must be from 0 to one less than the number of devices, 2"))
annotated([("grid", 2)], h=(0,), id="gird")
refused("id", ("model", WHERE + "configuration_id 'gird' is no configuration of the model"))
annotated([("grid", 4)], h=(None, spec("A", [0, 2, 3, 1], (1, (None, 4)))))
refused("order", ("unsupported", ": configuration 'grid': no grid of 4 devices in 1 stage, device = (stage * dp + i) * tp + j, has the shards of 'A' on [0, 2, 3, 1] "
                  "(node 'h'); number the devices so, or use a sidecar and --spec"))
annotated([("grid", 2)], h=(None, spec("h", [0, 1], (1, (None, 2)))), a=(None, spec("h", [0, 1], (0, (None, 2)))))
refused("two wishes", ("unsupported", ": nodes 'h' and 'a' want 'h' cut differently; a tensor has one layout here, and where a node needs another the compiler reshards: "
                       "leave the second sharding_spec out"))
annotated([("grid", 2)], h=(None, spec("A", [0, 1], (2, (None, 2)))))
refused("axis", ("sidecar", " (device configurations):5: parameter 'A': dim 2 is out of range, the shape is [24, 40]; use -2 to 1"))

# Flags beat them, and must agree with what they cut; without them they are hints that --spec=none ignores.
annotated([("grid", 2)], h=(None, spec("A", [0, 1], (1, (None, 2)))))
run = compile("--tp=3")
assert run.returncode == 1 and '"parts" is 2, but axis "tp" has 3; use --tp=2, or leave "parts" out' in run.stderr, run.stderr
run = compile("--tp=3", "--spec=none", "--verify")
assert run.returncode == 0 and not run.stderr, run.stderr
# Of several configurations the first is taken, and said so, or the one that is asked for.
annotated([("grid", 2), ("rows", 3)], h=(None, spec("A", [0, 1], (1, (None, 2)))), rows={"h": [spec("A", [0, 1, 2], (0, (None, 3)))]})
run = compile(f"--write-spec={folder}/first.json")
assert run.returncode == 0 and "(device configurations), the first of them, 'grid'; --onnx-configuration=rows takes the other; --spec=none" in run.stderr, run.stderr
assert json.loads((folder / "first.json").read_text())["mesh"] == mesh(1, 1, 2)
run = compile("--onnx-configuration=rows", f"--write-spec={folder}/rows.json", "--verify")
assert run.returncode == 0 and run.stdout.startswith("verified: ") and "first of them" not in run.stderr, run.stderr
rows = json.loads((folder / "rows.json").read_text())
assert rows["mesh"] == mesh(1, 1, 3) and rows["params"][0] == {"match": "A", "shard": [{"dim": 0, "axis": "tp"}]}, rows
run = compile("--onnx-configuration=column")
assert run.returncode == 1 and "error[usage]" in run.stderr and "--onnx-configuration=column is none of the model's device configurations; it has grid, rows" in run.stderr, run.stderr
run = compile("--onnx-configuration=rows", "--spec=none")
assert run.returncode == 1 and "--onnx-configuration=rows and --spec=none both say where annotations are; give one of them" in run.stderr, run.stderr
print("annotations are read")
