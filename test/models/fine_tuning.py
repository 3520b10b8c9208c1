#!/usr/bin/env python3
"""Fine-tuning: hpc-train begins from a folder of Hugging Face, and what it writes is one again.

  test/models/fine_tuning.py FOLDER MODEL.onnx...    with transformers, torch and numpy; hpc-opt, hpc-run and hpc-train on the PATH

The models are exports of gpt2-tiny, whose own weights differ from the pretrained ones. For each of several forms of those (whole, in shards, in bf16, by the names of the model without its
head, in a hub's cache of links):
- the loss of the first step is that of transformers in float64, so these weights are what training began with;
- the folder hf/ of the run has the names and files of the pretrained one, from_pretrained finds every key, and its logits are those of an inference plan with the checkpoint's weights.
A line each. Then hpc-opt --export=FOLDER without the pretrained folder, in shards; the first model with its masks in external data, which no pretrained folder has; and in f16, whose training
keeps all digits of pretrained f32.
"""
import json
import os
import subprocess
import sys

import numpy
import onnx
import safetensors
import safetensors.numpy
import torch
import transformers

CONFIG = dict(n_layer=4, n_embd=32, n_head=4, vocab_size=257, n_positions=64, use_cache=False, attn_pdrop=0, resid_pdrop=0, embd_pdrop=0, bos_token_id=0, eos_token_id=0)


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stderr


def pretrained(folder):
    torch.manual_seed(1)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**CONFIG))
    for parameter in model.parameters():
        parameter.data += torch.randn_like(parameter) * 0.05
    forms = {name: f"{folder}/{name}" for name in ("whole", "shards", "base", "bf16", "hub")}
    model.save_pretrained(forms["whole"])
    model.save_pretrained(forms["shards"], max_shard_size="100KB")
    model.transformer.save_pretrained(forms["base"])
    rounded = transformers.GPT2LMHeadModel.from_pretrained(forms["whole"]).bfloat16()
    rounded.save_pretrained(forms["bf16"])
    for name in os.listdir(forms["shards"]):  # as huggingface_hub keeps files
        os.makedirs(f"{folder}/blobs", exist_ok=True)
        os.makedirs(forms["hub"], exist_ok=True)
        os.rename(f"{forms['shards']}/{name}", f"{folder}/blobs/{name}.blob")
        os.symlink(f"../blobs/{name}.blob", f"{forms['hub']}/{name}")
        with open(f"{folder}/blobs/{name}.blob", "rb") as file, open(f"{forms['shards']}/{name}", "wb") as copy:
            copy.write(file.read())
    for form in forms.values():
        with open(f"{form}/tokenizer_config.json", "w") as file:
            file.write('{"eos_token": "<|endoftext|>"}')
    return {name: (path, (rounded if name == "bf16" else model).double().eval()) for name, path in forms.items()}


def keys_of(folder):
    names = {}
    for file in sorted(os.listdir(folder)):
        if file.endswith(".safetensors"):
            with safetensors.safe_open(f"{folder}/{file}", "pt") as tensors:
                names.update({name: tuple(tensors.get_slice(name).get_shape()) for name in tensors.keys()})
    return names


def logits_of(folder, ids):
    model, report = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), (folder, report)
    return model.double().eval()(torch.from_numpy(ids)).logits.detach().numpy()


def same(ours, right):
    worst = abs(ours - right).max() / abs(right).max()
    assert worst < 5e-6, worst  # f32: 4 layers, sums of up to 128 terms
    return worst


def main():
    folder, *models = sys.argv[1:]
    ids = numpy.random.default_rng(0).integers(0, 257, (3, 2, 16))
    numpy.savez(f"{folder}/steps.npz", input_ids=ids)
    numpy.savez(f"{folder}/one.npz", input_ids=ids[0])
    dims = ["--dim", "batch_size=2", "--dim", "sequence_length=16"]
    forms, count = pretrained(folder), 0
    for index, path in enumerate(models):
        run("hpc-opt", path, "--no-weights", *dims, "-o", f"{folder}/any{index}.plan")
        for name, (weights, model) in forms.items():
            home = f"{folder}/{name}{index}"
            run("hpc-train", path, f"--data={folder}/steps.npz", *dims, f"--weights={weights}", "--steps=2", "--lr=1e-2", "--tp=2", "--export=hf", f"--run={home}")
            with open(f"{home}/metrics.jsonl") as file:
                loss = next(each["loss"] for each in map(json.loads, file) if "loss" in each)
            tokens = torch.from_numpy(ids[0])
            with torch.no_grad():
                right = model(tokens, labels=tokens).loss.item()
            assert abs(loss - right) < 1e-5 * right, (path, name, loss, right)
            assert keys_of(f"{home}/hf") == keys_of(weights), (path, name)
            for file in ("config.json", "generation_config.json", "tokenizer_config.json"):
                assert os.path.exists(f"{weights}/{file}") == os.path.exists(f"{home}/hf/{file}"), (name, file)
            checkpoint = f"{home}/checkpoints/step-00000002"
            run("hpc-run", f"{folder}/any{index}.plan", f"--input={folder}/one.npz", f"--weights={checkpoint}", f"--output={folder}/out.npz")
            ours, trained = numpy.load(f"{folder}/out.npz")["logits"].astype(numpy.float64), logits_of(f"{home}/hf", ids[0])
            worst = same(ours, trained)
            before = model(torch.from_numpy(ids[0])).logits.detach().numpy()
            assert abs(before - trained).max() > 1e-2 * abs(trained).max()  # two steps of 1e-2 change every weight
            print(f"{os.path.basename(path)}, {name}: loss {loss:.6f}, logits within {worst:.1e}", flush=True)
            count += 1
        # Names of the model alone, in shards; from_pretrained has to be given the config.
        notes = run("hpc-opt", path, f"--trained={checkpoint}", f"--export={folder}/alone{index}", "--shard-size=64KB")
        assert "has no config.json" in notes, notes
        files = [file for file in os.listdir(f"{folder}/alone{index}") if file.endswith(".safetensors")]
        assert len(files) > 2 and os.path.exists(f"{folder}/alone{index}/model.safetensors.index.json"), files
        transformers.GPT2Config(**CONFIG, architectures=["GPT2LMHeadModel"]).save_pretrained(f"{folder}/alone{index}")
        same(logits_of(f"{folder}/alone{index}", ids[0]), trained)
        # Fewer files the next time: none of the older ones stays.
        run("hpc-opt", path, f"--trained={checkpoint}", f"--export={folder}/alone{index}")
        assert [file for file in os.listdir(f"{folder}/alone{index}") if file.startswith("model")] == ["model.safetensors"]
        same(logits_of(f"{folder}/alone{index}", ids[0]), trained)
    weights = forms["whole"][0]
    external, half = f"{folder}/external.onnx", f"{folder}/half.onnx"
    onnx.save_model(onnx.load(models[0]), external, save_as_external_data=True, location="external.bin", size_threshold=100)
    subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "narrow_model.py"), models[0], "f16", half], check=True)
    kept = safetensors.numpy.load_file(f"{weights}/model.safetensors")
    for path in (external, half):
        run("hpc-opt", path, "--train", "--optimizer=sgd", "--tp=2", *dims, "-o", f"{folder}/train.plan")
        # A step that is less than any digit.
        run("hpc-run", f"{folder}/train.plan", "--train", f"--data={folder}/steps.npz", f"--weights={weights}", "--steps=1", "--lr=1e-30", f"--save={folder}/kept.safetensors")
        saved = safetensors.numpy.load_file(f"{folder}/kept.safetensors")
        assert all(saved[name].dtype == numpy.float32 and numpy.array_equal(saved[name], kept[name]) for name in kept), path
    print(f"{count} equal")


if __name__ == "__main__":
    main()
