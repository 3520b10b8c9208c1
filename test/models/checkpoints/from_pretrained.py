"""The newest checkpoint of hpc-run --checkpoints is a model of Hugging Face: from_pretrained opens its shards, its logits are those of the inference plan, and safetensors opens the states.

  from_pretrained.py FOLDER INPUTS.npz LOGITS.npz    with transformers, torch and safetensors; FOLDER is of models/gpt2-tiny
"""
import glob
import os
import sys

import numpy
import safetensors
import torch
import transformers

folder, inputs, logits = sys.argv[1:]
config = transformers.GPT2Config(n_layer=4, n_embd=32, n_head=4, vocab_size=257, n_positions=64, use_cache=False, attn_pdrop=0, resid_pdrop=0, embd_pdrop=0)
config.save_pretrained(folder)
model, report = transformers.GPT2LMHeadModel.from_pretrained(folder, output_loading_info=True)
assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
right = model.double().eval()(torch.from_numpy(numpy.load(inputs)["input_ids"])).logits.detach().numpy()
found = numpy.load(logits)["logits"].astype(numpy.float64)
worst = abs(found - right).max() / abs(right).max()
assert worst < 5e-6, worst  # as in ../from_pretrained.py

shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}
states = glob.glob(os.path.join(folder, "optimizer", "*.safetensors"))
seen = {}
for shard in states:
    with safetensors.safe_open(shard, "pt") as file:
        seen.update({name: file.get_tensor(name) for name in file.keys()})
for name, tensor in seen.items():
    kind, parameter = name.split("/")
    assert kind in ("adam.m", "adam.v") and tensor.shape == shapes[parameter], name
    assert (tensor != 0).any() and (kind == "adam.m" or (tensor >= 0).all()), name
assert len(seen) == 2 * (len(shapes) - 1), len(seen)  # the head is tied
print(f"{len(glob.glob(os.path.join(folder, 'model-*.safetensors')))} shards of weights, {len(states)} of states, equal: {worst}")
