#!/usr/bin/env bash
# Compiles every dumped phase of a folder on to a plan, once more read and printed without debug information, and compares it with the plan of the whole compilation,
# byte by byte.
#   continue-phases.sh FOLDER PLAN
set -euo pipefail
found=0
for phase in "$1"/*.mlir; do
  hpc-opt "$phase" --mlir-print-debuginfo=false -o "$2.again.mlir"
  hpc-opt "$2.again.mlir" -o "$2.again.plan"
  cmp "$2" "$2.again.plan"
  echo "$(basename "$phase") leads to the same plan"
  found=$((found + 1))
done
[ "$found" -ge 7 ]
