"""What hpc-run --save wrote is a model of Hugging Face: with its config.json beside it, from_pretrained and safetensors open it, and its logits are those of the inference plan.

  from_pretrained.py FOLDER INPUTS.npz LOGITS.npz    with transformers, torch and safetensors

FOLDER is what --save=FOLDER/ wrote from models/gpt2-tiny; config.json, as the user has it, is put there here. LOGITS.npz is what hpc-run computed of INPUTS.npz with --weights=FOLDER.
"""
import hashlib
import json
import os
import sys

import numpy
import safetensors.torch
import torch
import transformers

folder, inputs, logits = sys.argv[1:]
weights = os.path.join(folder, "model.safetensors")
before = hashlib.sha256(open(weights, "rb").read()).hexdigest()
config = transformers.GPT2Config(n_layer=4, n_embd=32, n_head=4, vocab_size=257, n_positions=64, use_cache=False, attn_pdrop=0, resid_pdrop=0, embd_pdrop=0)
config.architectures = ["GPT2LMHeadModel"]
config.save_pretrained(folder)

tensors = safetensors.torch.load_file(weights)
assert not [name for name in tensors if name.startswith(("adam.", "momentum"))], sorted(tensors)
with safetensors.safe_open(weights, "pt") as file:
    assert file.metadata()["format"] == "pt" and file.metadata()["steps"] == "2"
model, report = transformers.GPT2LMHeadModel.from_pretrained(folder, output_loading_info=True)
assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
fresh = transformers.GPT2LMHeadModel(config)
fresh.load_state_dict(tensors)  # strict: every key, and no others
assert torch.equal(tensors["lm_head.weight"], tensors["transformer.wte.weight"])

ids = torch.from_numpy(numpy.load(inputs)["input_ids"])
found = numpy.load(logits)["logits"].astype(numpy.float64)
for each in (model, fresh):
    right = each.double().eval()(ids).logits.detach().numpy()
    assert right.shape == found.shape
    # f32: 4 layers, sums of up to 128 terms; a weight of before the training is off by 1e-3.
    worst = abs(found - right).max() / abs(right).max()
    assert worst < 5e-6, worst
untrained = numpy.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "gpt2-tiny", "expected_0.npz"))
old = untrained[untrained.files[0]]
assert old.shape != found.shape or abs(found - old).max() / abs(old).max() > 1e-4
assert hashlib.sha256(open(weights, "rb").read()).hexdigest() == before and json.load(open(os.path.join(folder, "config.json")))["n_layer"] == 4

# The way back: what save_pretrained writes, whole, in shards and in bf16, are weights for a plan.
model.float().save_pretrained(os.path.join(folder, "again"))
model.save_pretrained(os.path.join(folder, "shards"), max_shard_size="100KB")
assert os.path.exists(os.path.join(folder, "shards", "model.safetensors.index.json"))
model.transformer.save_pretrained(os.path.join(folder, "base"))  # names without transformer., and no head
model.bfloat16().save_pretrained(os.path.join(folder, "bfloat"))
numpy.savez(os.path.join(folder, "bfloat.npz"), logits=model.double()(ids).logits.detach().numpy())
torch.save(model.state_dict(), os.path.join(folder, "pytorch_model.bin"))
print("equal:", worst)
