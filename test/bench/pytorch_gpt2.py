"""The peer of the benchmarks: Hugging Face's GPT2LMHeadModel with the weights of an ONNX file. Sizes are read off the weights' shapes; HEADS in the
environment says how many heads where they are not 64 wide."""
import logging, os, sys
import onnx, torch, transformers

def load(model_file):
    """The model in f32, without dropout."""
    logging.disable(logging.WARNING)
    weights = {each.name: onnx.numpy_helper.to_array(each, os.path.dirname(model_file)) for each in onnx.load(model_file).graph.initializer}
    if "transformer.wpe.weight" not in weights:
        sys.exit("the file names no transformer.wpe.weight")
    positions, width = weights["transformer.wpe.weight"].shape
    layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("transformer.h."))
    vocabulary = next(array.shape[0] for name, array in weights.items() if name in ("transformer.wte.weight", "lm_head.weight"))
    config = transformers.GPT2Config(n_embd=width, n_layer=layers, n_head=int(os.environ.get("HEADS", width // 64)), n_positions=positions, vocab_size=vocabulary,
                                     attn_pdrop=0, embd_pdrop=0, resid_pdrop=0, use_cache=False)
    model = transformers.GPT2LMHeadModel(config)
    state = {name: torch.from_numpy(array.copy()) for name, array in weights.items() if name in model.state_dict()}
    missing = [name for name in model.load_state_dict(state, strict=False).missing_keys if name not in ("lm_head.weight", "transformer.wte.weight")]
    assert not missing, f"the file lacks {missing}"
    return model
