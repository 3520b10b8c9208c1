"""How a test may arrange the ranks of tensor and context parallelism, as strings of hpc-opt's flags. Stages, data parallelism and micro-batches are added by who draws one."""
import math

PLAIN = ("--tp=1", "--tp=2", "--tp=3", "--tp=4", "--tp=5")
# Axes of tp: any program takes these. No size is a multiple of all, so parts are uneven in every model.
ARRANGED = ("--tp=4 --tp-layout=2d", "--tp=6 --tp-layout=2d:3x2", "--tp=2 --tp-layout=2d:2x1", "--tp=8 --tp-layout=2.5d:2x2x2", "--tp=2 --tp-layout=2.5d:1x1x2",
            "--tp=8 --tp-layout=3d", "--tp=4 --tp-layout=3d:2x1x2", "--tp=4 --tp-layout=2d --panels")
# Sequences are cut: only programs with positions take these.
SEQUENCE = ("--tp=2 --sp", "--tp=3 --sp", "--cp=2", "--cp=3 --cp-balance=plain", "--cp=2 --cp-mode=ulysses", "--cp=3 --cp-mode=ring", "--cp=2 --tp=2 --sp", "--cp=2 --tp=4 --tp-layout=2d")


def ranks(flags):
    """Of a string or list of flags: the product of its degrees."""
    flags = flags.split() if isinstance(flags, str) else flags
    return math.prod(int(flag.split("=")[1]) for flag in flags if flag.startswith(("--tp=", "--cp=", "--pp=", "--dp=")))
