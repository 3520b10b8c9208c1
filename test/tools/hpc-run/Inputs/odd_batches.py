"""odd_batches.py FOLDER: data of the mlp: 30 batches of which number 25 is far from the others; 6 batches of which all from number 3 on hold NaN."""
import sys

import numpy

random = numpy.random.default_rng(1)
x, labels = random.standard_normal((30, 8, 20)).astype("f4"), random.integers(0, 7, (30, 8))
x[25] *= 100
numpy.savez(f"{sys.argv[1]}/spike.npz", x=x, labels=labels)
x[3:, 5, 7] = numpy.nan
numpy.savez(f"{sys.argv[1]}/nan.npz", x=x[:6], labels=labels[:6])
numpy.savez(f"{sys.argv[1]}/held-out.npz", x=x[:3], labels=labels[:3])
numpy.savez(f"{sys.argv[1]}/first.npz", x=x[:2], labels=labels[:2])
