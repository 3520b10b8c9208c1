#!/usr/bin/env bash
# Everything that needs a GPU: the backend cuda against the host's on plans that stand in a folder. It runs where there is
# neither toolkit nor network: from a build folder, or from a folder that --pack made, carried to the machine with the card.
#
#   tools/test-gpu.sh [BUILD]            # runs (default: build); one line a case, the figures in BUILD/test-gpu.json
#   tools/test-gpu.sh --pack=DIR [BUILD] # needs no GPU: copies programs, plugin, plans, weights and inputs to DIR
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
pack="" build="$here/build"
for argument in "$@"; do
  case "$argument" in
  --pack=*) pack="${argument#*=}" ;;
  -*) echo "test-gpu.sh: unknown option $argument; usage: tools/test-gpu.sh [--pack=DIR] [BUILD]" >&2; exit 1 ;;
  *) build="$argument" ;;
  esac
done
[ -x "$build/bin/hpc-run" ] || { echo "test-gpu.sh: there is no $build/bin/hpc-run; build first (tools/setup.sh), or name the build folder" >&2; exit 1; }
run="$build/bin/hpc-run"

# tp pp micro-batches of each case: each becomes a plan for host and GPU.
layouts=("1 1 1" "2 1 1" "1 2 2" "2 2 2" "4 1 1")
model="$here/models/gpt2-odd/dynamo-eager-op18.onnx" input="$here/models/gpt2-odd/inputs_1.npz"

compile() { # folder
  local tp pp mb
  mkdir -p "$1" && cp "$input" "$1/inputs.npz" || return 1
  for layout in "${layouts[@]}"; do
    read -r tp pp mb <<<"$layout"
    "$build/bin/hpc-opt" "$model" --target=host,cuda --tp="$tp" --pp="$pp" --micro-batches="$mb" \
      --dim batch_size=4 --dim sequence_length=33 -o "$1/tp$tp-pp$pp-mb$mb.plan" || return 1
  done
  cp "$(dirname "$model")"/* "$1/"
}

if [ -n "$pack" ]; then
  mkdir -p "$pack/bin" "$pack/tools" || exit 1
  cp "$build"/bin/{hpc-run,libhpc_cuda.so} "$pack/bin/" && cp "$here"/tools/{test-gpu.sh,test-gpu.py} "$pack/tools/" && compile "$pack/plans" ||
    { echo "test-gpu.sh: packing failed; the reason stands above" >&2; exit 1; }
  ldd "$pack/bin/hpc-run" | awk '$3 ~ /libdnnl|libgomp|libprotobuf|libxxhash/ { print $3 }' | xargs -r cp -Lt "$pack/bin/"
  echo "test-gpu.sh: $pack is packed; on the machine with the GPU: LD_LIBRARY_PATH=$pack/bin $pack/tools/test-gpu.sh $pack"
  exit 0
fi

if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1' && [ -z "${HPC_CUDA_LIBRARIES:-}" ]; then
  found=""
  for folder in $(tr : " " <<<"${LD_LIBRARY_PATH:-}") /usr/local/nvidia/lib64 /usr/local/nvidia/lib; do [ -e "$folder/libcuda.so.1" ] && found="$folder"; done
  [ -n "$found" ] || { echo "test-gpu.sh: this machine has no NVIDIA driver (libcuda.so.1 is nowhere), so nothing was tested; run it on a machine with a GPU" >&2; exit 1; }
  export LD_LIBRARY_PATH="$found:${LD_LIBRARY_PATH:-}"
fi
plans="$build/plans"
if [ ! -d "$plans" ]; then
  plans="$build/test-gpu-plans"
  compile "$plans" || { echo "test-gpu.sh: hpc-opt could not make the plans; the reason stands above" >&2; exit 1; }
fi
exec python3 "$here/tools/test-gpu.py" "$run" "$plans" "$build/test-gpu.json"
