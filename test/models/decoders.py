#!/usr/bin/env python3
"""Decoders of text, two or three small layers each, of Hugging Face transformers and of nanoGPT, exported by PyTorch's own exporters as plain forward graphs: ids in, logits of all positions out.

  decoders.py export NAME FILE [--exporter=dynamo|torchscript] [--attention=eager|sdpa] [--inputs=ids|mask|positions|past] [--opset=18]
  decoders.py store FOLDER NAME...    exports of models/decoders, without weights, in the ways of STORED
  decoders.py golden FILE.json NAME...    what generate() makes of PROMPTS, each alone: greedy ids, and beams of the families in BEAMS (without NAME: all)
  decoders.py list

`--inputs`: input_ids alone, with attention_mask, with attention_mask and position_ids, or with both and past_key_values. Weights are made
by integer arithmetic, the same everywhere (decoder_weights.py, which needs numpy alone). Needs test/requirements.txt.
"""
import argparse
import inspect
import json
import logging
import math
import os
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from decoder_weights import lively  # noqa: E402

POSITIONS, NEW = 64, 44
PROMPTS = ([7, 31, 4], [90, 2, 2, 61, 18, 77, 43, 5, 29, 11, 83], [50, 12, 66, 9, 35, 20])

# Heads that no usual number of ranks divides, groups, windows shorter than the text: what one family has, another has not.
FAMILIES = {
    "llama": ("Llama", dict(hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=44)),
    "qwen2": ("Qwen2", dict(hidden_size=40, num_attention_heads=5, num_key_value_heads=1, intermediate_size=36, num_hidden_layers=3)),
    "mistral": ("Mistral", dict(hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=44, sliding_window=10)),
    "phi": ("Phi", dict(hidden_size=48, num_attention_heads=3, intermediate_size=60, partial_rotary_factor=0.5)),
    "gpt_neox": ("GPTNeoX", dict(hidden_size=40, num_attention_heads=5, intermediate_size=60, rotary_pct=0.5)),
    "opt": ("OPT", dict(hidden_size=24, num_attention_heads=3, ffn_dim=44, word_embed_proj_dim=24)),
    "bloom": ("Bloom", dict(hidden_size=48, n_head=6, n_layer=2)),
    "gemma": ("Gemma", dict(hidden_size=24, num_attention_heads=4, num_key_value_heads=1, head_dim=10, intermediate_size=44, hidden_activation="gelu_pytorch_tanh")),
    "gemma2": ("Gemma2", dict(hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=12, intermediate_size=44, sliding_window=10, query_pre_attn_scalar=12, num_hidden_layers=3)),
    "olmo3": ("Olmo3", dict(hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=44, sliding_window=10, layer_types=["sliding_attention", "full_attention"])),
    "falcon": ("Falcon", dict(hidden_size=32, num_attention_heads=4, multi_query=True, parallel_attn=True, alibi=False, bias=False)),
    "gptj": ("GPTJ", dict(n_embd=32, n_head=4, n_layer=2, rotary_dim=4, n_positions=POSITIONS)),
    "nanogpt": (None, dict(width=36, heads=3, layers=2)),
}
VOCABULARY = 97


# Exporter, attention and inputs of the exports in models/decoders, where they are not dynamo, eager, ids.
STORED = {
    "qwen2": ("dynamo", "sdpa", "mask"),
    "mistral": ("dynamo", "sdpa", "ids"),
    "gpt_neox": ("dynamo", "sdpa", "positions"),
    "opt": ("dynamo", "eager", "mask"),
    "olmo3": ("dynamo", "sdpa", "ids"),
    "falcon": ("dynamo", "sdpa", "ids"),
}
# Flags of generate().
BEAMS = {
    "llama": dict(num_beams=4, num_return_sequences=4, length_penalty=0.8, early_stopping=False, eos_token_id=43),
    "mistral": dict(num_beams=3, num_return_sequences=2, length_penalty=1.0, early_stopping=False, eos_token_id=29),
    "bloom": dict(num_beams=3, num_return_sequences=2, length_penalty=1.0, early_stopping=True, eos_token_id=13),
}


def nano_gpt(width, heads, layers, flash):
    """https://github.com/karpathy/nanoGPT, model.py, with logits of all positions."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class CausalSelfAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.register_buffer("bias", torch.tril(torch.ones(POSITIONS, POSITIONS)).view(1, 1, POSITIONS, POSITIONS), persistent=False)

        def forward(self, x):
            B, T, C = x.size()
            q, k, v = (part.view(B, T, heads, C // heads).transpose(1, 2) for part in self.c_attn(x).split(width, dim=2))
            if flash:
                y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0, is_causal=True)
            else:
                att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
                y = F.softmax(att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf")), dim=-1) @ v
            return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), CausalSelfAttention(), nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(VOCABULARY, width), nn.Embedding(POSITIONS, width)
            self.h, self.ln_f = nn.ModuleList(Block() for _ in range(layers)), nn.LayerNorm(width)
            self.lm_head = nn.Linear(width, VOCABULARY, bias=False)
            self.lm_head.weight = self.wte.weight

        def forward(self, input_ids):
            x = self.wte(input_ids) + self.wpe(torch.arange(0, input_ids.size(1), dtype=torch.long, device=input_ids.device))
            for block in self.h:
                x = block(x)
            return self.lm_head(self.ln_f(x))

    return GPT()


def build(name, attention="eager"):
    import torch
    import transformers

    kind, shape = FAMILIES[name]
    if kind is None:
        model = nano_gpt(**shape, flash=attention == "sdpa")
    else:
        shape = {"num_hidden_layers": 2, "max_position_embeddings": POSITIONS, **shape} if "n_layer" not in shape else shape
        config = getattr(transformers, kind + "Config")(vocab_size=VOCABULARY, pad_token_id=0, bos_token_id=1, eos_token_id=None, attention_dropout=0.0, **shape)
        model = getattr(transformers, kind + "ForCausalLM")._from_config(config, attn_implementation=attention)
    with torch.no_grad():
        for path, weight in model.named_parameters():
            weight.copy_(torch.from_numpy(lively(path, tuple(weight.shape))))
    return model.eval()


def export(name, file, exporter="dynamo", attention="eager", inputs="ids", opset=18):
    import torch
    from transformers.cache_utils import DynamicCache

    model = build(name, attention)
    plain = FAMILIES[name][0] is None

    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask=None, position_ids=None, *past):
            if plain:
                return self.model(input_ids)
            given = dict(input_ids=input_ids, attention_mask=attention_mask)
            if position_ids is not None and "position_ids" in inspect.signature(model.forward).parameters:
                given["position_ids"] = position_ids
            cache = DynamicCache(tuple(zip(past[0::2], past[1::2]))) if past else None
            out = self.model(**given, past_key_values=cache, use_cache=bool(past))
            return (out.logits, *(each for layer in out.past_key_values.layers for each in (layer.keys, layer.values))) if past else out.logits

    batch, length, before = 2, 6, 3 if inputs == "past" else 0
    names = ["input_ids", "attention_mask", "position_ids"][: {"ids": 1, "mask": 2, "positions": 3, "past": 3}[inputs]]
    example = [torch.arange(batch * length).view(batch, length), torch.ones(batch, before + length, dtype=torch.int64),
               torch.arange(before, before + length).repeat(batch, 1)][: len(names)]
    sizes = [{0: "batch", 1: "sequence"}, {0: "batch", 1: "total" if before else "sequence"}, {0: "batch", 1: "sequence"}][: len(names)]
    outputs = ["logits"]
    if before:
        config = model.config
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        for layer in range(config.num_hidden_layers):
            for part in ("key", "value"):
                names.append(f"past_key_values.{layer}.{part}")
                outputs.append(f"present.{layer}.{part}")
                example.append(torch.randn(batch, heads, before, dim))
                sizes.append({0: "batch", 2: "past"})
    module = Plain().eval()
    with torch.no_grad():
        if exporter == "torchscript":
            torch.onnx.export(module, tuple(example), file, input_names=names, output_names=outputs, opset_version=opset, dynamo=False,
                              dynamic_axes={**dict(zip(names, sizes)), "logits": {0: "batch", 1: "sequence"}})
            return
        made = {each: torch.export.Dim(each, min=2, max=POSITIONS) for each in ("batch", "sequence", "past")}
        if before:
            made["total"] = torch.export.Dim.DYNAMIC
        dims = [{dim: made[size] for dim, size in each.items()} for each in sizes]
        program = torch.onnx.export(module, tuple(example), None, input_names=names, output_names=outputs, opset_version=opset, dynamo=True,
                                    dynamic_shapes=(*dims[:3], tuple(dims[3:])) if before else tuple(dims), verbose=False)
        program.save(file)


def store(name, folder):
    """A small export without weights: decoder_weights.py makes them from their names, which are PyTorch's, with .T where the exporter has transposed."""
    import onnx
    import torch

    file = os.path.join(folder, name + ".onnx")
    export(name, file, *STORED.get(name, ("dynamo", "eager", "ids")))
    model = onnx.load(file)
    for node in model.graph.node:
        node.doc_string = ""
        scopes = [each for each in node.metadata_props if each.key == "pkg.torch.onnx.name_scopes"]
        del node.metadata_props[:]
        node.metadata_props.extend(scopes)
    del model.graph.value_info[:]
    del model.metadata_props[:]
    known = {}
    for path, weight in build(name).named_parameters():
        known[weight.detach().numpy().tobytes()] = path
        if weight.ndim == 2:
            known.setdefault(weight.detach().numpy().T.copy().tobytes(), path + ".T")
    renamed, offset = {}, 0
    for tensor in model.graph.initializer:
        path = known.get(tensor.raw_data)
        if path is None:
            continue
        renamed[tensor.name] = path
        tensor.name = path
        del tensor.metadata_props[:]
        length = len(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", name + ".weights"), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        offset += length
    for node in model.graph.node:
        for i, read in enumerate(node.input):
            node.input[i] = renamed.get(read, read)
    with open(file, "wb") as out:
        out.write(model.SerializeToString())


def greedy(model, prompt):
    """New ids, and the least distance between the two best logits of a step."""
    import torch

    ids, margins = list(prompt), []
    for _ in range(NEW):
        out = model(torch.tensor([ids]))
        best = getattr(out, "logits", out)[0, -1].topk(2)
        ids.append(int(best.indices[0]))
        margins.append(float(best.values[0] - best.values[1]))
    return ids[len(prompt):], min(margins)


def golden(name):
    """What generate() makes with its cache, in float64, of each prompt alone; in float32 of all, padded on the left, it has to be the same."""
    import torch

    single, model = build(name), build(name).double()
    with torch.no_grad():
        plain = [greedy(model, prompt) for prompt in PROMPTS]
        result = {"greedy": [ids for ids, _ in plain], "margin": float(f"{min(margin for _, margin in plain):.2g}")}
        if FAMILIES[name][0] is None:
            return result
        config = dict(max_new_tokens=NEW, do_sample=False, use_cache=True, eos_token_id=None)
        cached = [model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.int64), **config)[0, len(prompt):].tolist() for prompt in PROMPTS]
        longest = max(map(len, PROMPTS))
        padded = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in PROMPTS])
        mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in PROMPTS])
        batch = single.generate(padded, attention_mask=mask, **config)[:, longest:].tolist()
        if not cached == result["greedy"] == batch:
            raise SystemExit(f"{name}: the ids of generate() are not those of the whole text: margin {result['margin']}, cached {cached == result['greedy']}, batch {batch == result['greedy']}")
        if name in BEAMS:
            config.update(BEAMS[name], return_dict_in_generate=True, output_scores=True)
            result["how"], result["beams"] = BEAMS[name], []
            for prompt in PROMPTS:
                out = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.int64), **config)
                end = config["eos_token_id"]
                texts = [[id for id in text[len(prompt):].tolist()] for text in out.sequences]
                texts = [text[: text.index(end) + 1] if end in text else text for text in texts]
                result["beams"].append([{"ids": text, "score": float(f"{score:.9g}")} for text, score in zip(texts, out.sequences_scores.tolist())])
    return result


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["export", "store", "golden", "list"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--exporter", default="dynamo")
    parser.add_argument("--attention", default="eager")
    parser.add_argument("--inputs", default="ids")
    parser.add_argument("--opset", type=int, default=18)
    arguments = parser.parse_args()
    if arguments.command == "export":
        export(*arguments.names, arguments.exporter, arguments.attention, arguments.inputs, arguments.opset)
    elif arguments.command == "store":
        folder, *names = arguments.names
        for name in names or FAMILIES:
            store(name, folder)
    elif arguments.command == "golden":
        file, *names = arguments.names
        with open(file if names else os.devnull) as old:
            results = json.load(old) if names else {"prompts": PROMPTS}
        results.update({name: golden(name) for name in names or FAMILIES})
        with open(file, "w") as out:
            out.write("{\n" + ",\n".join(f' "{name}": {json.dumps(result)}' for name, result in results.items()) + "\n}\n")
    elif arguments.command == "list":
        print(*FAMILIES)
