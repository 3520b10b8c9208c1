"""Three batches for step.mlir (x in f32, t in f64, which is converted), and files that do not fit it.

  make_data.py FOLDER
"""
import sys

import numpy

folder = sys.argv[1]
chance = numpy.random.default_rng(1)
x = chance.standard_normal((3, 6, 5)).astype(numpy.float32)
t = chance.standard_normal((3, 6, 7))
numpy.savez(folder + "/data.npz", x=x, t=t)
numpy.savez(folder + "/no-t.npz", x=x)
broken = x.copy()
broken[1, 0, 0] = numpy.nan  # of the steps 1, 4, 7 ...
numpy.savez(folder + "/nan.npz", x=broken, t=t)
