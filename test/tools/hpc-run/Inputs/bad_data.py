"""Files that are no data of the step in train.test, and one batch of good ones: bad_data.py GOOD.npz FOLDER."""
import os
import sys

import numpy

good, folder = dict(numpy.load(sys.argv[1])), sys.argv[2]


def write(name, **changed):
    numpy.savez(os.path.join(folder, name), **{**good, **changed})


write("half.npz", x=good["x"].astype(numpy.float16))
write("large.npz", x=numpy.full(good["x"].shape, 1e300))
write("empty.npz", x=good["x"][:0])
write("uneven.npz", t=good["t"][:2])
write("wide.npz", x=numpy.zeros((3, 6, 6), numpy.float32))
numpy.save(os.path.join(folder, "tokens.npy"), numpy.arange(100))
open(os.path.join(folder, "odd.bin"), "wb").write(b"abc")
open(os.path.join(folder, "text.txt"), "w").write("once upon a time")
open(os.path.join(folder, "cut.npz"), "wb").write(open(sys.argv[1], "rb").read()[:-100])
numpy.savez(os.path.join(folder, "one-batch.npz"), x=good["x"][0], t=good["t"][0].astype(numpy.float32))
