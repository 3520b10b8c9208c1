#!/usr/bin/env python3
"""Makes MODEL.json: what Hugging Face's generate() answers with the weights of shared/models, a key-value cache on, each prompt alone.

  $(test/environment.sh) test/models/generation/make_generation.py MODELS [MODEL...]     MODELS: the folder shared/models

The options of a case have the names of hpc-generate's flags; `answers` has a list for each prompt, the best first. A case is kept
only if float32 with a cache and float64 without one give the same ids, so that rounding decides nowhere; `gap` is the least distance of
the two largest logits of a greedy choice, and scores are those of float64.
"""
import functools
import json
import os
import sys

import numpy
import torch
import transformers
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel

# layers, width, heads, vocabulary, positions, inner width; lengths of prompts; new tokens; cases
MODELS = {
    "gpt2-tiny": ((4, 32, 4, 257, 64, None), (3, 5, 9, 16), 48, range(6)),
    "gpt2-odd": ((3, 40, 5, 503, 48, 72), (2, 7, 8, 13), 35, range(6)),
    "gpt2-124m": ((12, 768, 12, 50257, 1024, None), (4, 11, 24), 200, (0, 6)),
}


def cases(new):
    """Options. End tokens are those, so many of them, that the most likely answers hold at some place: (place, count)."""
    beam = {"strategy": "beam", "beams": 4, "max-new-tokens": new}
    return [
        {"strategy": "greedy", "max-new-tokens": new},
        {"strategy": "greedy", "max-new-tokens": new, "repetition-penalty": 1.3, "min-length": 20, "end-tokens": (new // 2, 2)},
        {**beam, "num-return-sequences": 4},
        {**beam, "length-penalty": 0.5, "end-tokens": (9, 4), "num-return-sequences": 2},
        {**beam, "length-penalty": 2.0, "early-stopping": "yes", "end-tokens": (4, 1), "num-return-sequences": 3},
        {**beam, "beams": 3, "early-stopping": "never", "end-tokens": (new // 2, 2), "repetition-penalty": 1.2},
        {**beam, "max-new-tokens": 30, "end-tokens": (9, 4), "num-return-sequences": 4},
    ]


def model_of(folder, name):
    layers, width, heads, vocabulary, positions, inner = MODELS[name][0]
    model = GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=width, n_head=heads, vocab_size=vocabulary, n_positions=positions, n_inner=inner,
                                       bos_token_id=None, eos_token_id=None, pad_token_id=0)).eval()
    if name == "gpt2-124m":
        sys.path.insert(0, folder)
        from fill import fill
        values = {key: fill(key, tuple(value.shape)) for key, value in model.state_dict().items()}
    else:
        values = dict(numpy.load(os.path.join(folder, name, "weights.npz")))
    missing = model.load_state_dict({key: torch.from_numpy(numpy.ascontiguousarray(value)) for key, value in values.items()}, strict=False).missing_keys
    assert set(missing) <= {"lm_head.weight"}, missing
    return model


def answers(model, prompt, options, cache):
    beams = options.get("beams", 1)
    config = GenerationConfig(do_sample=False, max_new_tokens=options["max-new-tokens"], num_beams=beams, length_penalty=options.get("length-penalty", 1.0),
                              early_stopping={"no": False, "yes": True, "never": "never"}[options.get("early-stopping", "no")],
                              num_return_sequences=options.get("num-return-sequences", 1), repetition_penalty=options.get("repetition-penalty", 1.0),
                              min_length=options.get("min-length", 0), eos_token_id=options.get("end-tokens"), pad_token_id=0, use_cache=cache,
                              return_dict_in_generate=True, output_scores=True)
    result = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), generation_config=config)
    found = []
    for row, ids in enumerate(result.sequences.tolist()):
        ids = ids[len(prompt) :]
        end = next((place for place, token in enumerate(ids) if token in options.get("end-tokens", [])), len(ids))
        found.append({"ids": ids[: end + 1], **({"score": result.sequences_scores[row].item()} if beams > 1 else {})})
    top = torch.stack(result.scores)[:, 0].topk(2).values
    return found, (top[:, 0] - top[:, 1]).min().item()


def make(folder, name):
    (_, _, _, vocabulary, _, _), lengths, new, chosen = MODELS[name]
    model = model_of(folder, name)
    draw = numpy.random.default_rng(5)
    prompts = [draw.integers(0, vocabulary, length).tolist() for length in lengths]
    likely = functools.cache(lambda penalty: [answers(model, prompt, {"max-new-tokens": new, "repetition-penalty": penalty}, True)[0][0]["ids"] for prompt in prompts])
    made = []
    for options in [cases(new)[number] for number in chosen]:
        if "end-tokens" in options:
            place, count = options["end-tokens"]
            options["end-tokens"] = sorted({ids[place] for ids in likely(options.get("repetition-penalty", 1.0))})[:count]
        single = [answers(model.float(), prompt, options, True) for prompt in prompts]
        exact = [answers(model.double(), prompt, options, name == "gpt2-124m") for prompt in prompts]
        model.float()
        same = all([one["ids"] for one in a[0]] == [one["ids"] for one in b[0]] for a, b in zip(single, exact))
        gap = {"gap": min(gap for _, gap in exact)} if options["strategy"] == "greedy" else {}
        print(name, options, gap, "lengths", [len(one["ids"]) for found, _ in exact for one in found], "" if same else "float32 and float64 differ: left out", flush=True)
        if same:
            made.append({"options": options, "prompts": prompts, "answers": [found for found, _ in exact], **gap})
    text = ",\n".join(json.dumps(case) for case in made)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.json"), "w") as file:
        file.write('{"transformers": "%s", "cases": [\n%s\n]}\n' % (transformers.__version__, text))


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    for name in sys.argv[2:] or MODELS:
        make(sys.argv[1], name)
