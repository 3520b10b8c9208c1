"""Which ops of `nn` the passes name: op_names.py ROOT. A pass that asks what an op *is* must be changed for every new op, and the one that
is forgotten compiles to something slower or wrong; so passes ask interfaces (compiler/Interfaces), and only what ALLOWED lists names ops.
Prints a line for every other place and exits 1."""
import pathlib
import re
import sys

# Where values begin and regions are: nouns of the language, as arguments and functions are.
EVERYWHERE = {"ParameterOp", "ConstantOp", "FusedOp", "YieldOp"}
ALL = None
ALLOWED = {  # the first prefix that fits counts
    "passes/Raise/": ALL,  # matchers name what they look for
    # One line or case an op: its code. Unit tests name the op that has none.
    "passes/Kernels/Elements/ScalarEmitter.cpp": ALL,
    "passes/Kernels/Elements/ElementEmitter": ALL,
    "passes/Kernels/Elements/RowComposites.cpp": ALL,
    "passes/Kernels/Elements/EmbeddingGrad": ALL,
    "passes/Kernels/Elements/Dropout": ALL,
    "passes/Kernels/Regions/IndexMap.cpp": ALL,
    "passes/Kernels/Regions/StridedView.cpp": ALL,
    "passes/Kernels/Regions/AttentionRegion.cpp": ALL,
    "passes/Kernels/Regions/KeyConcat": {"ConcatOp", "CastOp", "SliceOp", "TransposeOp", "ReshapeOp"},  # how keys are put together
    "passes/Kernels/Elements/RegionBody.cpp": {"ReduceOp", "ExpOp", "SubOp", "UpdateSliceOp"},  # the two sums of a softmax that is written out
    "passes/Kernels/Regions/EpilogueRegion.cpp": {"MatmulOp", "AddOp", "GeluOp", "ReluOp", "MaxOp", "ReshapeOp"},  # what libraries of products do
    "passes/Precision/ExactSums.cpp": {"MatmulOp", "ReduceOp", "EmbeddingGradOp", "AttentionGradOp", "AddOp", "RoundOp"},  # what adds up, each with what it adds, and on which grid
    "passes/Precision/FixedPoint.cpp": {"AbsOp", "RoundOp"},  # what it makes
    "passes/Precision/QuantizeWeights.cpp": {"MatmulOp"},  # whose right operand may be codes
    "passes/Precision/BindInt8.cpp": {"MatmulOp", "CastOp", "ReshapeOp"},  # the same, and what it makes
    "passes/Precision/": {"CastOp"},  # what that phase makes
    "passes/Kernels/BindCasts.cpp": {"CastOp"},  # rounding, as it is done when weights are loaded
    "passes/Kernels/MultiplyWindows.cpp": {"WindowOp", "PadOp", "MulOp", "ReduceOp", "MatmulOp", "ReshapeOp"},  # a convolution as import writes it
    "passes/Recompute/ForwardPart.cpp": {"CastOp"},  # a weight as it is gathered
    "passes/Recompute/KeptValues.cpp": {"WindowOp", "PadOp", "CastOp"},  # copies of an image that products read where the image lies, and of numbers in more bytes
    "passes/Kernels/BindParts.cpp": {"SliceOp"},  # what a rank reads of a file is a slice of it
    "passes/Kernels/Regions/OneHotSum": {"ReduceOp", "SelectOp", "CompareOp", "IotaOp"},  # how a loss whose classes are cut says which one counts
    "passes/Kernels/PanelUnits": {"MatmulOp", "ReshapeOp", "TransposeOp", "CastOp", "AddOp"},  # what stands between a gather, its product, and the sum of its panels
    "passes/Kernels/DecomposeComposites.cpp": {"UpdateSliceOp"},  # claimed where it writes a state
    "passes/Kernels/Elements/RegionShape.cpp": {"ReduceOp", "ReshapeOp", "UpdateSliceOp"},  # of a state that is written in part, rows alone are computed
    "passes/Kernels/Fusion/InPlace.cpp": {"ReduceOp", "ReshapeOp", "UpdateSliceOp"},  # likewise: nothing of the state is read
    "passes/Kernels/Fusion/PulledWork.cpp": {"UpdateSliceOp"},  # likewise
    "passes/Kernels/Fusion/FusionGroups.cpp": {"ReduceOp", "UpdateSliceOp"},  # likewise
    "passes/Kernels/VerifyKernels.cpp": {"MatmulOp", "ReshapeOp", "UpdateSliceOp", "AddOp", "MulOp"},  # where a state is written, and positions as sums of step scalars
    # Reductions shape the loop nest. Products become library calls, which read operands transposed and leave out tails;
    # a reshape is the buffer of its operand.
    "passes/Kernels/Fusion/Fusion": {"ReduceOp", "MatmulOp"},
    "passes/Generate/HoldKeys.cpp": {"AttentionOp", "IotaOp"},  # whose keys are held, and a source that starts elsewhere
    "passes/Generate/KeepWindows.cpp": {"AttentionOp", "UpdateSliceOp", "IotaOp", "BroadcastOp", "ReshapeOp"},  # what reads and writes a state; through what the keys of a mask are followed
    "passes/Generate/ProveCausal.cpp": {"AttentionOp", "UpdateSliceOp", "AddOp"},  # what is proven, of the ops that hpc-hold-keys makes
    "passes/Kernels/": {"ReduceOp", "MatmulOp", "TransposeOp", "ReshapeOp"},
    "passes/Lower/KernelWork.cpp": {"AttentionOp", "AttentionGradOp"},  # whose code works on blocks of scores
    "passes/Lower/LowerMatmul.cpp": {"MatmulOp", "ReshapeOp", "SliceOp"},  # a part that a product reads where it lies
    "passes/Lower/": {"MatmulOp", "ReshapeOp"},
    "passes/Partition/RingAttention.cpp": {"AttentionOp", "AttentionGradOp", "GatherOp"},  # what is taken apart, and zigzag's order of keys
    "passes/Partition/RingKeys": {"GatherOp"},  # that order
    "passes/Partition/VerifyRings.cpp": {"AttentionOp", "AttentionGradOp", "SliceOp", "AddOp", "ConcatOp"},  # what a ring is made of
    "passes/Partition/CollectPartials.cpp": {"AddOp", "MulOp"},  # sums of scaled terms
    "passes/Partition/NarrowReshards.cpp": {"CastOp"},  # which that pass moves and makes
    "passes/Stage/SumsOverParts.cpp": {"AddOp"},  # terms that lie in several stages
    "passes/Driver/Verify.cpp": {"RoundOp"},  # how an exact sum is marked
    "passes/Driver/DropoutRate.cpp": {"DropoutOp"},  # --dropout is the rate of this op
    "passes/Train/BuildGradients.cpp": {"DetachOp", "SelectOp", "CastOp"},  # where gradients stop, which that pass removes; what it makes
}

root = pathlib.Path(sys.argv[1])
wrong = 0
for path in sorted((root / "passes").rglob("*")):
    if path.suffix not in (".cpp", ".h"):
        continue
    name = str(path.relative_to(root))
    allowed = next((ops for prefix, ops in ALLOWED.items() if name.startswith(prefix)), set())
    for number, line in enumerate(path.read_text().splitlines(), 1):
        # Making an op is not asking for one.
        for op in re.findall(r"(?<!replaceOpWithNewOp<)\bnn::([A-Z]\w*Op)\b(?!::create)", line.split("//")[0]):
            if op in EVERYWHERE or allowed is ALL or op in allowed:
                continue
            print(f"{name}:{number}: names nn::{op}; ask an interface of the op (compiler/Interfaces/Structure.h, its sharding rule), or say in "
                  f"test/tools/op_names.py why not")
            wrong += 1
sys.exit(wrong > 0)
