"""Whether the logits (or the one array) of each OUTPUT.npz, of f32, f16 or bf16, are within BOUND of max |logit| of the true ones: near_truth.py EXPECTED.npz BOUND OUTPUT.npz ..."""
import sys

import numpy

expected, bound, *outputs = sys.argv[1:]
arrays = numpy.load(expected)
name = "logits" if "logits" in arrays else arrays.files[0]
true = arrays[name].astype(numpy.float64)
for output in outputs:
    got = numpy.load(output)[name]
    if got.dtype.kind == "V":  # bf16: the upper half of an f32
        got = (got.view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
    error = numpy.abs(got.astype(numpy.float64) - true).max() / numpy.abs(true).max()
    print(f"{'near' if error <= float(bound) else 'FAR'}: {error:.3g} of max |logit|, the bound is {bound}")
