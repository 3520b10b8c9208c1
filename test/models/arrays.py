#!/usr/bin/python3
"""Writes input_ids of an .npz as STEM.ids.npy, and two arrays that do not fit: STEM.short.npy (one column less), STEM.float.npy; and one with an id that gpt2-tiny has no row for, STEM.large.npy."""
import sys

import numpy

ids, stem = numpy.load(sys.argv[1])["input_ids"], sys.argv[2]
numpy.save(stem + ".ids.npy", ids)
numpy.save(stem + ".short.npy", ids[:, :-1].copy())
numpy.save(stem + ".float.npy", ids.astype(numpy.float32))
ids[1, 3] = 257
numpy.save(stem + ".large.npy", ids)
