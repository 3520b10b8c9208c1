"""Device configurations that PyPI's onnx-ir writes into a model are compiled as it means them, and it reads those that hpc-opt writes. onnx_ir_devices.py MODELS FOLDER"""
import json, pathlib, subprocess, sys

import onnx
import onnx_ir

models, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
FILE = folder / "m.onnx"


def annotated(name, devices, **shards):
    """Writes mlp with a configuration. Of a weight: pairs of axis and number of shards, the devices, and groups of these where each holds a copy; of `stages` what node is in which."""
    model = onnx_ir.load(models / "mlp" / "dynamo-op18.onnx")
    configuration = model.add_device_configuration(name, num_devices=devices)
    stages = shards.pop("stages", {})
    for node in model.graph:
        for value in node.inputs:
            if value is None or value.name.replace(".", "_") not in shards:
                continue
            axes, places, *groups = shards[value.name.replace(".", "_")]
            for axis, count in axes:
                node.shard(value, configuration=configuration, axis=axis, num_shards=count, device_indices=places)
            if groups:
                entries = tuple(onnx_ir.IndexToDeviceGroupMapEntry(key, tuple(members)) for key, members in groups[0].items())
                (one,) = node.device_configurations
                specs = tuple(onnx_ir.ShardingSpec(spec.value, spec.device, entries, spec.sharded_dims) if spec.value is value else spec for spec in one.sharding_specs)
                node.device_configurations = (onnx_ir.NodeDeviceConfiguration(one.configuration, specs, one.pipeline_stage),)
        if node.name in stages:
            node.set_pipeline_stage(configuration, stages[node.name])
    model.ir_version = 11
    onnx_ir.save(model, FILE)
    onnx.checker.check_model(FILE)


def means(mesh, **cuts):
    """The plan is proved equal to the model, and it has this mesh and these cuts of weights."""
    run = subprocess.run(["hpc-opt", FILE, "--dim=batch=8", f"--write-spec={folder}/read.json", f"--write-onnx-annotations={folder}/written.onnx", "--verify", "-o", folder / "a.plan"],
                         capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.startswith("verified: ") and "taking the annotations of" in run.stderr, (run.stdout, run.stderr)
    read = json.loads((folder / "read.json").read_text())
    assert read["mesh"] == {"mb": 1, "dp": 1, "pp": 1, "cp": 1, **mesh}, read["mesh"]
    for rule in read["params"]:
        if (wanted := cuts.get(rule["match"].replace(".", "_"))) is not None:
            assert rule["shard"] == [{"dim": dim, "axis": axis} for dim, axis in wanted] and "inferred" not in rule, rule
    return read


def written():
    """By weight: device of each shard, shards by axis, and groups, as onnx-ir reads what hpc-opt wrote."""
    model = onnx_ir.load(folder / "written.onnx")
    onnx.checker.check_model(folder / "written.onnx")
    specs = [spec for node in model.graph for one in node.device_configurations for spec in one.sharding_specs]
    groups = lambda spec: {entry.key: entry.value for entry in spec.index_to_device_group_map}
    return {spec.value.name: ([groups(spec).get(device, (device,)) for device in spec.device], {dim.axis: dim.simple_shardings[0].num_shards for dim in spec.sharded_dims}) for spec in specs}


# Megatron's pair: weights are [out, in].
annotated("pair", 2, fc1_weight=([(0, 2)], [0, 1]), fc2_weight=([(1, 2)], [0, 1]))
means({"tp": 2}, fc1_weight=[(0, "tp")], fc2_weight=[(1, "tp")])
assert written()["fc2.weight"] == ([(0,), (1,)], {1: 2}), written()
# Both axes of a weight over a grid of 2 x 2: without more words, rows of a data axis that stores pieces.
grid = {weight: ([(0, 2), (1, 2)], [0, 1, 2, 3]) for weight in ("fc1_weight", "fc2_weight")}
annotated("grid", 4, **grid)
means({"dp": 2, "tp": 2}, fc1_weight=[(0, "dp"), (1, "tp")])
# The same as the layout 2d: the name says so.
annotated("tp.x=2 tp.y=2 layout=2d", 4, **{weight: ([(1, 2), (0, 2)], [0, 1, 2, 3]) for weight in ("fc1_weight", "fc2_weight", "head_weight")})
means({"tp.x": 2, "tp.y": 2, "layout": "2d"}, fc1_weight=[(0, "tp.y"), (1, "tp.x")])
# Copies of each shard on two devices, by groups.
annotated("copies", 4, fc1_weight=([(0, 2)], [-1, -2], {-1: [0, 2], -2: [1, 3]}))
means({"dp": 2, "tp": 2}, fc1_weight=[(0, "tp")])
assert written()["fc1.weight"] == ([(0, 2), (1, 3)], {0: 2}), written()
# Stages without shards.
annotated("stages", 2, stages={"node_linear": 0, "node_linear_1": 1, "node_linear_2": 1})
assert means({"pp": 2, "tp": 1})["stages"][-1]["stage"] == 1
print("onnx-ir's configurations are read")
