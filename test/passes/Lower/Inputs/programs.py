"""programs.py make INPUTS.npz | programs.py check INPUTS.npz OUTPUTS.npz: what programs.mlir computes, in numpy."""
import sys

import numpy as np

if sys.argv[1] == "make":
    np.savez(sys.argv[2], x=np.random.default_rng(3).standard_normal((8, 3)).astype(np.float32))
else:
    x = np.load(sys.argv[2])["x"].astype(np.float64)
    y = np.tanh(x)
    z = y * y
    g = z + y
    outputs = np.load(sys.argv[3])
    for name, expected in {"h": g * z, "k": g * y, "l": g * y - x}.items():
        assert np.abs(outputs[name] - expected).max() < 1e-6, name
    print("equal")
