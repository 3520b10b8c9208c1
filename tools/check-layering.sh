#!/usr/bin/env bash
# Checks the arrows of the design between the folders by the includes of their files; every line that breaks one is named.
#   runtime/base <- runtime/plan <- runtime/cost <- compiler <- passes <- passes/Driver <- passes/Search <- tools
#   runtime/cost <- the rest of runtime <- passes/Driver, tools
# No phase (passes/<Phase>/) sees another; only passes/Phases.cpp and passes/Driver/ see all. The folders of passes/Kernels/ have an order of their own (its README).
# runtime/ sees no MLIR or LLVM, and only OnnxReader the ONNX protobuf.
#
#   tools/check-layering.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

# May `from` (a file) include `to` (a root-relative path)?
allowed() {
  local from="$1" to="$2" phase
  case "$from" in
  runtime/base/*) [[ "$to" == runtime/base/* ]] ;;
  runtime/plan/*) [[ "$to" == runtime/base/* || "$to" == runtime/plan/* ]] ;;
  runtime/cost/*) [[ "$to" == runtime/base/* || "$to" == runtime/plan/* || "$to" == runtime/cost/* ]] ;;
  runtime/*) [[ "$to" == runtime/* ]] ;;
  compiler/*) [[ "$to" == compiler/* ]] || is_plain "$to" ;;
  passes/Phases.cpp) [[ "$to" == compiler/* || "$to" == passes/* && "$to" != passes/Driver/* && "$to" != passes/Search/* ]] || is_plain "$to" ;;
  passes/Driver/*) [[ "$to" != passes/Search/* && "$to" != tools/* && "$to" != test/* ]] ;;
  passes/Search/*) [[ "$to" != tools/* && "$to" != test/* ]] ;;
  passes/*)
    [[ "$to" == compiler/* ]] || is_plain "$to" && return 0
    # A header directly in passes/ belongs to all phases; a phase's own folder, at any depth, to itself.
    [[ "$to" == passes/* && "${to#passes/}" != */* ]] && return 0
    phase="${from#passes/}"
    [[ "$phase" == */* && "$to" == "passes/${phase%%/*}/"* ]] || return 1
    [[ "$from" =~ ^passes/Kernels/([^/]*)/ ]] || return 0
    phase="${BASH_REMATCH[1]}"
    [[ "$to" =~ ^passes/Kernels/([^/]*)/ ]] || return 0
    allowed_kernels "$phase" "${BASH_REMATCH[1]}"
    ;;
  tools/*) [[ "$to" != test/* ]] ;;
  esac
}

# A folder of runtime/ that passes and the compiler see.
is_plain() { [[ "$1" == runtime/base/* || "$1" == runtime/plan/* || "$1" == runtime/cost/* ]]; }

# May a file of folder `from` of passes/Kernels include one of folder `to`?
allowed_kernels() {
  local from="$1" to="$2"
  case "$from" in
  "$to") true ;;
  Regions | Code) false ;;
  Elements) [[ "$to" == Regions ]] ;;
  Fusion) [[ "$to" == Regions || "$to" == Elements ]] ;;
  Host | Device) [[ "$to" == Regions || "$to" == Elements || "$to" == Code ]] ;;
  esac
}

violations=0
complain() {
  echo "check-layering: $1"
  violations=$((violations + 1))
}

name='["<]([^">]*)[">]'
files=0
while IFS= read -r file; do files=$((files + 1)); done < <(find runtime compiler passes tools -name '*.h' -o -name '*.cpp' -o -name '*.td' -o -name '*.cu')

while IFS=: read -r file line text; do
  [[ "$text" =~ $name ]] && to="${BASH_REMATCH[1]}"
  case "$to" in
  runtime/* | compiler/* | passes/* | tools/* | test/*)
    allowed "$file" "$to" || complain "$file:$line includes $to, against the arrows of the design"
    ;;
  mlir/* | mlir-c/* | llvm/* | llvm-c/* | lld/* | clang/*)
    [[ "$file" != runtime/* ]] || complain "$file:$line includes $to: the runtime is free of MLIR and LLVM"
    ;;
  *onnx*.pb.h | *onnx*_pb.h)
    [[ "$file" == compiler/Import/OnnxReader* ]] || complain "$file:$line includes $to: only compiler/Import/OnnxReader sees the protobuf"
    ;;
  *)
    [[ ! -e "$(dirname "$file")/$to" ]] || complain "$file:$line includes $to: write it relative to the root, $(dirname "$file")/$to"
    ;;
  esac
done < <(grep -rnE --include='*.h' --include='*.cpp' --include='*.td' --include='*.cu' '^[[:space:]]*#?[[:space:]]*include[[:space:]]*["<]' runtime compiler passes tools || true)

[ "$files" -gt 0 ] || complain "there is no source file below $(pwd)"
[ "$violations" -eq 0 ] || { echo "check-layering: $violations wrong in $files files"; exit 1; }
echo "check-layering: $files files keep to the arrows"
