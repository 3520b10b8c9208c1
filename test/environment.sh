#!/usr/bin/env bash
# Prints the path of a Python that has test/requirements.txt: PyTorch, ONNX Runtime and others that tests compare with.
#
#   test/environment.sh [BUILD] [--make]
#
# It is BUILD/python (BUILD: build/), which --make makes from PyPI (about 3 GB, two minutes, once for each version of the requirements), or $HPC_TEST_PYTHON.
# Exit status 1 and a reason on stderr where there is none; the tests that need it are then skipped by name.
set -uo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
build="$root/build" make=""
for argument in "$@"; do
  case "$argument" in
  --make) make=1 ;;
  -*) echo "environment.sh: unknown option $argument; usage: test/environment.sh [BUILD] [--make]" >&2; exit 1 ;;
  *) build="$argument" ;;
  esac
done

if [ -n "${HPC_TEST_PYTHON:-}" ]; then
  "$HPC_TEST_PYTHON" -c 'import torch, onnxruntime' || { echo "environment.sh: HPC_TEST_PYTHON=$HPC_TEST_PYTHON has no torch or onnxruntime" >&2; exit 1; }
  echo "$HPC_TEST_PYTHON"
  exit 0
fi
place="$build/python" requirements="$root/test/requirements.txt"
if ! cmp -s "$requirements" "$place/requirements.txt"; then
  [ -n "$make" ] || { echo "environment.sh: $place is not there or has other versions; test/environment.sh --make makes it" >&2; exit 1; }
  rm -rf "$place"
  { /usr/bin/python3 -m venv "$place" && "$place/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"; } >"$build/python.log" 2>&1 || {
    rm -rf "$place"
    echo "environment.sh: $place could not be made, so tests against PyTorch and ONNX Runtime are skipped; the end of $build/python.log:" >&2
    tail -n 3 "$build/python.log" >&2
    exit 1
  }
  cp "$requirements" "$place/requirements.txt"
fi
echo "$place/bin/python"
