#!/usr/bin/env python3
"""Makes processors.txt and sequences.txt: what Hugging Face's logits processors and generate() return for the models of HashModel.h.

  $(test/environment.sh) test/unit/runtime/generate/make_golden.py

Each line is a case: its options, and what follows from them. GoldenTest.cpp reads the lines in the same order of fields.
"""
import itertools
import os
import random
import warnings

import numpy
import torch
import transformers
from transformers import GenerationConfig, GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

here = os.path.dirname(os.path.abspath(__file__))
multipliers = numpy.uint64(0xBF58476D1CE4E5B9), numpy.uint64(0x94D049BB133111EB)


def mix(state, value):
    """The finalizer of SplitMix64, of the exclusive or."""
    with numpy.errstate(over="ignore"):
        state = numpy.uint64(state) ^ (numpy.asarray(value, numpy.uint64) + numpy.uint64(0x9E3779B97F4A7C15))
        state = (state ^ (state >> numpy.uint64(30))) * multipliers[0]
        state = (state ^ (state >> numpy.uint64(27))) * multipliers[1]
        return state ^ (state >> numpy.uint64(31))


def logits_after(tokens, vocabulary, scale):
    """Bell-shaped; exact in float32, `scale` being a power of two."""
    state = numpy.uint64(1)
    for token in tokens:
        state = mix(state, token)
    words = mix(state, numpy.arange(vocabulary))
    parts = sum(((words >> numpy.uint64(16 * part)) & numpy.uint64(0xFFFF)).astype(numpy.int64) for part in range(4))
    return (parts - 131070).astype(numpy.float32) * numpy.float32(scale)


class HashModel(PreTrainedModel, GenerationMixin):
    config_class = PretrainedConfig
    main_input_name = "input_ids"

    def __init__(self, vocabulary, scale, bias):
        super().__init__(PretrainedConfig(vocab_size=vocabulary, num_hidden_layers=1, is_encoder_decoder=False))
        self.vocabulary, self.scale, self.bias = vocabulary, scale, bias
        self.unused = torch.nn.Parameter(torch.zeros(1))

    def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **_):
        return {"input_ids": input_ids}

    def forward(self, input_ids, **_):
        logits = numpy.stack([logits_after(row, self.vocabulary, self.scale) + self.bias for row in input_ids.tolist()])
        return CausalLMOutput(logits=torch.from_numpy(logits)[:, None, :])


def fnv(scores):
    """FNV-1a of the words of a float32 array; every NaN would be a defect."""
    assert not numpy.isnan(scores).any()
    result = 0xCBF29CE484222325
    for word in scores.view(numpy.uint32).tolist():
        result = ((result ^ word) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return result


def processors(file):
    """Fields: number, vocabulary, scale, length, repetition penalty, minimum length, end tokens (0 or 3), temperature, top-k, top-p; kept, hash."""
    draw = random.Random(1)
    for number in range(1000):
        vocabulary = draw.choice([1, 17, 257, 1000, 4001]) if number % 50 else 50257
        scale = 2.0 ** draw.choice([-18, -15, -14, -13])
        length = draw.choice([1, 5, 40])
        penalty = draw.choice([1.0, 1.0, 1.3, 0.7])
        min_length = draw.choice([0, 0, 20])
        ends = draw.choice([0, 3]) if vocabulary > 3 else 0
        temperature = draw.choice([1.0, 0.7, 1.9])
        top_k = draw.choice([0, 0, 1, 3, 50, 700, vocabulary])
        top_p = draw.choice([1.0, 0.9, 0.75, 0.3, 0.999, 1e-9])
        logits = torch.from_numpy(logits_after([number], vocabulary, scale)[None])
        sequence = torch.tensor([[int(mix(number, position)) % vocabulary for position in range(length)]])
        model = HashModel(vocabulary, scale, 0)
        config = GenerationConfig(do_sample=True, repetition_penalty=penalty, min_length=min_length, temperature=temperature, top_k=top_k, top_p=top_p)
        config._eos_token_tensor = torch.tensor([0, 2, vocabulary - 1]) if ends else None
        processed = model._get_logits_processor(config, input_ids_seq_length=length)(sequence, logits)[0].numpy()
        print(number, vocabulary, scale, length, penalty, min_length, ends, temperature, top_k, top_p, numpy.isfinite(processed).sum(), fnv(processed), file=file)


def sequences(file):
    """Fields: vocabulary, scale, bias of end tokens, end tokens (count, then each), beams (0: greedy), length penalty, early stopping, answers,
    new tokens, minimum length, minimum of new tokens, repetition penalty, prompt (count, then each); answers (count, then each: score, tokens)."""
    draw = random.Random(2)
    grid = itertools.product([0, 2, 4, 5], [0.0, 1.0, 2.0, -1.0, 0.5], [False, True, "never"], range(6))
    for beams, penalty, early, number in grid:
        if beams == 0 and (penalty, early) != (1.0, False):
            continue
        vocabulary, scale = draw.choice([(23, 2.0**-14), (60, 2.0**-15), (211, 2.0**-15), (6, 2.0**-14)])
        ends = draw.sample(range(vocabulary), draw.choice([0, 1, 1, 3]))
        bias = numpy.zeros(vocabulary, numpy.float32)
        bias[ends] = draw.choice([0, 1, 3])
        answers = draw.randint(1, beams) if beams else 1
        new_tokens = draw.choice([1, 3, 12, 20])
        min_length = draw.choice([0, 0, 8]) if ends else 0
        min_new = min(draw.choice([0, 0, 3]), new_tokens) if ends and not min_length else 0
        repetition = draw.choice([1.0, 1.0, 1.4])
        prompts = [[draw.randrange(vocabulary) for _ in range(1 + number)] for _ in range(2)]
        model = HashModel(vocabulary, scale, bias)
        config = GenerationConfig(do_sample=False, num_beams=max(beams, 1), length_penalty=penalty, early_stopping=early, num_return_sequences=answers,
                                  max_new_tokens=new_tokens, min_length=min_length, min_new_tokens=min_new or None, repetition_penalty=repetition,
                                  eos_token_id=ends or None, pad_token_id=0, use_cache=False, return_dict_in_generate=True, output_scores=True)
        together = generate(model, prompts, config)
        for prompt, expected in zip(prompts, together):
            assert generate(model, [prompt], config) == [expected], "a prompt's answers depend on its neighbour"
            fields = [vocabulary, scale, bias.max(), len(ends), *ends, beams, penalty, str(early).lower(), answers, new_tokens, min_length, min_new, repetition]
            fields += [len(prompt), *prompt, len(expected)]
            for score, tokens in expected:
                fields += [repr(score), len(tokens), *tokens]
            print(*fields, file=file)


def generate(model, prompts, config):
    """For each prompt, its answers: (score, new tokens), without the padding after an end."""
    result = model.generate(torch.tensor(prompts), attention_mask=torch.ones(len(prompts), len(prompts[0]), dtype=torch.long), generation_config=config)
    rows = []
    scores = result.sequences_scores.tolist() if config.num_beams > 1 else [0.0] * len(result.sequences)
    for score, row in zip(scores, result.sequences.tolist()):
        tokens = row[len(prompts[0]) :]
        end = next((place for place, token in enumerate(tokens) if token in (config.eos_token_id or [])), None)
        rows.append((score, tokens if end is None else tokens[: end + 1]))
    count = config.num_return_sequences
    return [rows[at : at + count] for at in range(0, len(rows), count)]


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    warnings.simplefilter("ignore")  # minimum lengths that the maximum forbids
    unspecified = torch.sort  # top-p sorts so that the order of equal scores depends on the machine
    torch.sort = lambda *values, **options: unspecified(*values, stable=True, **options)
    for maker in [processors, sequences]:
        with open(os.path.join(here, f"{maker.__name__}.txt"), "w") as file:
            maker(file)
