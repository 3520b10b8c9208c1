#!/usr/bin/env bash
# From nothing to a GPT-2 that runs on four ranks: sets up, builds, compiles a real export with tensor and pipeline parallelism, runs it,
# shows that its logits are the serial model's and what was communicated.
#
#   tools/demo.sh [gpt2-odd|gpt2-tiny]
set -euo pipefail
cd "$(dirname "$0")/.."
model="models/${1:-gpt2-odd}"
[ -d "$model" ] || { echo "demo.sh: there is no $model; use gpt2-odd or gpt2-tiny" >&2; exit 1; }
tools/setup.sh hpc-opt hpc-run hpc-plan

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
show() { echo; echo "\$ $*"; "$@"; }

echo
echo "== Compile: 2 tensor-parallel ranks x 2 pipeline stages, two micro-batches; verified against the serial model, every collective explained"
show build/bin/hpc-opt "$model/dynamo-eager-op18.onnx" --tp=2 --pp=2 --micro-batches=2 --dim batch_size=4 --dim sequence_length=33 \
  --verify --explain -o "$out/gpt2.plan"
echo
echo "== What every rank does, holds and sends"
show build/bin/hpc-plan "$out/gpt2.plan" --check
show build/bin/hpc-plan "$out/gpt2.plan"
echo
echo "== Run: threads are ranks"
show build/bin/hpc-run "$out/gpt2.plan" --input="$model/inputs_1.npz" --output="$out/logits.npz"
echo
echo "== Compare with the logits of the serial model in float64"
/usr/bin/python3 - "$out/logits.npz" "$model/expected_1.npz" <<'PYTHON'
import sys
import numpy
got, want = (numpy.load(file)["logits"] for file in sys.argv[1:])
assert got.shape == want.shape, f"logits are {got.shape}, not {want.shape}"
error, bound = numpy.abs(got.astype("f8") - want).max() / numpy.abs(want).max(), 3e-6
print(f"logits {got.shape}: max |difference| is {error:.3g} of max |logit|; the bound is {bound}: {'equal' if error <= bound else 'WRONG'}")
sys.exit(not error <= bound)
PYTHON
