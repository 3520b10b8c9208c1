#!/usr/bin/env bash
# Everything that needs a GPU: the backend cuda against the host's on plans that stand in a folder, and its speed beside PyTorch's. It runs where
# there is neither toolkit nor network: from a build folder, or from a folder that --pack made, carried to the machine with the card.
#
#   tools/test-gpu.sh [BUILD]            # runs (default: build), in under 8 minutes; one line a case, the figures in BUILD/test-gpu.json
#   tools/test-gpu.sh --pack=DIR [--few] [BUILD] # needs no GPU: copies programs, plugin, plans, weights and inputs to DIR; --few: some of the small models' layouts alone
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
pack="" few="" build="$here/build"
for argument in "$@"; do
  case "$argument" in
  --pack=*) pack="${argument#*=}" ;;
  --few) few=1 ;;
  -*) echo "test-gpu.sh: unknown option $argument; usage: tools/test-gpu.sh [--pack=DIR [--few]] [BUILD]" >&2; exit 1 ;;
  *) build="$argument" ;;
  esac
done
[ -x "$build/bin/hpc-run" ] || { echo "test-gpu.sh: there is no $build/bin/hpc-run; build first (tools/setup.sh), or name the build folder" >&2; exit 1; }
shared="$here/../shared/models"

# A folder a model, with its file, weights, inputs and plans: DTYPE-tpN-ppN[-NAME].plan for host and GPU. The card's results are compared with the host's
# f32 of one rank, so that plan exists. gpt2-tiny divides evenly, gpt2-odd (5 heads, 3 layers) by nothing.
compile_model() { # folder, model, file, inputs, dims, layouts "tp pp [DTYPES [NAME FLAG]]" ...
  local folder="$1/$2" path="$here/models/$2" file="$3" dims="$5" layout tp pp dtypes name flag mb dtype
  mkdir -p "$folder" && cp "$path/$file"* "$folder/" && cp "$path/$4" "$folder/inputs.npz" || return 1
  shift 5
  for layout in "$@"; do
    read -r tp pp dtypes name flag <<<"$layout"
    mb=1 && [ "$pp" -gt 1 ] && mb=2
    for dtype in ${dtypes:-model bf16}; do
      # shellcheck disable=SC2086 # several flags, or none
      "$build/bin/hpc-opt" "$folder/$file" --target=host,cuda --dtype="$dtype" --tp="$tp" --pp="$pp" --micro-batches="$mb" $dims $flag \
        -o "$folder/${dtype/model/f32}-tp$tp-pp$pp${name:+-$name}.plan" || return 1
    done
  done
}
compile_gpt2() { # folder, model, layouts
  compile_model "$1" "$2" dynamo-eager-op18.onnx inputs_1.npz "--dim batch_size=4 --dim sequence_length=33" "${@:3}"
}

# Models at full size, compiled without their weights, which the machine with the card makes by fill.py: 16 x 1024 tokens in bf16, whose result is the
# next token of each; and, where the true logits are known, 2 x 64 tokens in both types, and training steps of 8 x 1024 in bf16.
compile_speed() { # folder
  local name copy
  for name in gpt2-124m gpt2-1558m; do
    mkdir -p "$1/$name" && copy="$1/$name/next-token.onnx" || return 1
    /usr/bin/python3 "$here/tools/test-gpu-model.py" "$shared/$name/model.onnx" "$copy" &&
      "$build/bin/hpc-opt" "$copy" --target=cuda --dtype=bf16 --no-weights --dim batch_size=16 --dim sequence_length=1024 -o "$1/$name/speed.plan" &&
      "$build/bin/hpc-plan" "$1/$name/speed.plan" --json >"$1/$name/speed.json" && rm "$copy" || return 1
    if [ -e "$shared/$name/expected_0.npz" ]; then
      cp "$shared/$name/expected_0.npz" "$1/$name/" && /usr/bin/python3 "$here/tools/test-gpu-model.py" "$shared/$name/model.onnx" "$copy" --keep-outputs || return 1
      for dtype in model bf16; do
        "$build/bin/hpc-opt" "$copy" --target=cuda --dtype="$dtype" --no-weights --dim batch_size=2 --dim sequence_length=64 \
          -o "$1/$name/${dtype/model/f32}.plan" || return 1
      done
      "$build/bin/hpc-opt" "$copy" --train --optimizer=adamw --target=cuda --dtype=bf16 --no-weights --dim batch_size=8 --dim sequence_length=1024 \
        -o "$1/$name/training.plan" && "$build/bin/hpc-plan" "$1/$name/training.plan" --json >"$1/$name/training.json" && rm "$copy" || return 1
    fi
  done
  cp "$shared/fill.py" "$1/"
}

# Training steps of the small models, forward, backward and update: a pipeline, copies of the data, states and parameters cut over them, fp16 with its
# scaled loss, dropout, whose masks are the same everywhere.
compile_training() { # folder, cases "MODEL FILE DATA DTYPE tp pp dp zero [NAME FLAGS]" ...
  local folder model file data dtype tp pp dp zero name flags item from
  for item in "${@:2}"; do
    read -r model file data dtype tp pp dp zero name flags <<<"$item"
    from="$here/models/$model" && [ -e "$from/$file" ] || from="$shared/$model"
    [ -e "$from/$file" ] || { echo "test-gpu.sh: there is no $from/$file, so no plan of it"; continue; }
    folder="$1/$model$([ "$data" = inputs_1.npz ] || echo -dropout)" && mkdir -p "$folder" && cp "$from/$file"* "$folder/" && cp "$from/$data" "$folder/inputs.npz" || return 1
    # shellcheck disable=SC2086 # several flags, or none
    "$build/bin/hpc-opt" "$folder/$file" --train --optimizer=adamw --target=host,cuda --dtype="$dtype" --tp="$tp" --pp="$pp" --dp="$dp" --zero="$zero" --schedule=1f1b \
      --micro-batches=2 --dim batch_size=4 --dim sequence_length="$([ "$data" = inputs_1.npz ] && echo 33 || echo 32)" $flags \
      -o "$folder/${dtype/model/f32}-tp$tp-pp$pp-dp$dp-zero$zero${name:+-$name}.plan" || return 1
  done
}

# Plans that continue texts, whose entries prefill and decode are run from caches of zeros, with the inputs of both.
compile_generation() { # folder, cases "MODEL FLAGS" ...
  local model flags folder item
  for item in "${@:2}"; do
    read -r model flags <<<"$item"
    folder="$1/$model" && mkdir -p "$folder" || return 1
    # shellcheck disable=SC2086 # several flags
    "$build/bin/hpc-opt" "$here/models/$model/dynamo-eager-op18.onnx" --generate --batch=4 --max-length=32 --prefill-chunk=8 --target=host,cuda $flags \
      -o "$folder/$(sed 's/--//g; s/=//g; s/ /-/g; s/dtype//' <<<"$flags").plan" || return 1
    /usr/bin/python3 -c "
import numpy, sys
ids = numpy.random.default_rng(3).integers(0, 90, (4, 8))
numpy.savez(sys.argv[1] + '/prefill.npz', input_ids=ids, position=numpy.int64(16), row=numpy.int64(5))
numpy.savez(sys.argv[1] + '/decode.npz', input_ids=ids[:, :1], position=numpy.int64(21))" "$folder" || return 1
  done
}

compile() { # folder
  local tiny="gpt2-tiny dynamo-eager-op18.onnx inputs_1.npz" odd="gpt2-odd dynamo-eager-op18.onnx inputs_1.npz" dropout="gpt2-odd torchscript-op17-dropout.onnx train_tokens.npz"
  local image=(model.onnx inputs_0.npz "--dim batch=4")
  if [ -n "$few" ]; then
    compile_gpt2 "$1/models" gpt2-tiny "1 1" "1 4" && compile_gpt2 "$1/models" gpt2-odd "1 1" "2 2" "2 2 fp16" "4 1 model 2d --tp-layout=2d:2x2" &&
      compile_training "$1/training" "$tiny model 1 1 1 0" "$tiny bf16 2 2 2 0" "$odd model 2 2 2 1" "$odd fp16 1 1 2 3" "$dropout model 2 1 2 0"
    return
  fi
  compile_gpt2 "$1/models" gpt2-tiny "1 1" "2 1" "4 1" "1 2" "2 2" "4 2" "1 4" "2 4" "4 4" || return 1
  compile_gpt2 "$1/models" gpt2-odd "1 1" "3 1" "2 2" "1 1 fp16" "2 2 fp16" "4 1 model 2d --tp-layout=2d:2x2" "4 1 bf16 2d --tp-layout=2d:2x2" \
    "1 1 model deterministic --deterministic" "2 2 model deterministic --deterministic" "4 1 model panels --tp-layout=2d:2x2 --panels" \
    "8 1 model 25d --tp-layout=2.5d:2x2x2" "8 1 model 3d --tp-layout=3d:2x2x2" "3 1 model sp --sp" "1 1 model gather-cp2 --cp=2" \
    "1 1 bf16 ring-cp2 --cp=2 --cp-mode=ring" "1 1 model ring-cp3 --cp=3 --cp-mode=ring" "2 1 model ulysses-cp2 --cp=2 --cp-mode=ulysses" || return 1
  compile_model "$1/models" decoder model.onnx inputs_0.npz "--dim batch=2 --dim time=9" "1 1" "2 2" "4 1 model 2d --tp-layout=2d:2x2" || return 1
  compile_model "$1/models" resnet "${image[@]}" "1 1" "2 2" && compile_model "$1/models" vit "${image[@]}" "1 1" "2 2" || return 1
  compile_model "$1/models" mlp dynamo-op18.onnx inputs_0.npz "--dim batch=6" "1 1" "2 2" "4 1 model 2d --tp-layout=2d:2x2" || return 1
  compile_training "$1/training" "$tiny model 1 1 1 0" "$tiny bf16 1 1 1 0" "$tiny model 2 2 2 0" "$tiny bf16 2 2 2 0" "$odd model 2 2 2 1" "$odd bf16 2 2 2 1" \
    "$odd model 2 1 2 3" "$odd bf16 2 1 2 3" "$tiny fp16 2 2 1 0" "$odd fp16 1 1 1 0" "$dropout model 1 1 1 0" "$dropout bf16 2 2 1 0" "$dropout model 2 1 2 3" \
    "$odd model 4 1 1 0 2d --tp-layout=2d:2x2" "$odd model 2 1 1 0 sp --sp" "$odd model 1 1 1 0 gather-cp2 --cp=2" "$odd bf16 1 1 1 0 ring-cp2 --cp=2 --cp-mode=ring" \
    "$odd model 1 1 1 0 ulysses-cp2 --cp=2 --cp-mode=ulysses" || return 1
  compile_generation "$1/generation" "gpt2-tiny --tp=1 --pp=1" "gpt2-odd --tp=2 --pp=2" "gpt2-odd --tp=3 --dtype=bf16" || return 1
  if [ -d "$shared" ]; then
    compile_speed "$1/speed"
  else
    echo "test-gpu.sh: there is no $shared, so the folder has no models at full size and no speed will be measured"
  fi
}

if [ -n "$pack" ]; then
  mkdir -p "$pack/bin" "$pack/lib" "$pack/tools" || exit 1
  cp "$build"/bin/{hpc-run,hpc-calibrate,libhpc_cuda.so} "$pack/bin/" && cp "$here"/tools/test-gpu*.{sh,py} "$pack/tools/" && compile "$pack/plans" ||
    { echo "test-gpu.sh: packing failed; the reason stands above" >&2; exit 1; }
  # All but the C library, which belongs to the machine; programs look for them in ../lib, and nothing else there sees them.
  ldd "$pack"/bin/hpc-{run,calibrate} | awk '$3 ~ /^\// && $1 !~ /^(libc|libm|libdl|librt|libpthread|ld-linux.*)\.so/ { print $3 }' | sort -u | xargs -r cp -Lt "$pack/lib/"
  echo "test-gpu.sh: $pack is packed ($(du -sh "$pack" | cut -f1)); on the machine with the GPU: $pack/tools/test-gpu.sh $pack"
  exit 0
fi

# NVIDIA's libraries that the machine's linker does not know lie in the driver's mounted folder or in the wheels of python3.
if [ -z "${HPC_CUDA_LIBRARIES:-}" ]; then
  wheels=$(python3 -c 'import glob, sys; print(*(f for p in sys.path for f in glob.glob(p + "/nvidia/*/lib")), sep=":")' 2>/dev/null)
  for library in libcuda.so.1 libcublasLt.so.13 libcudnn.so.9 libnccl.so.2; do
    # Of cuDNN PyTorch's own may be newer than the machine's, and it is what the peer runs on.
    [ "$library" != libcudnn.so.9 ] && ldconfig -p 2>/dev/null | grep -qF "$library" && continue
    found=""
    for folder in $(tr : " " <<<"${LD_LIBRARY_PATH:-}:$wheels") /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/local/cuda/lib64; do
      [ -z "$found" ] && [ -e "$folder/$library" ] && found="$folder"
    done
    [ -n "$found" ] && export LD_LIBRARY_PATH="$found:${LD_LIBRARY_PATH:-}" && continue
    ldconfig -p 2>/dev/null | grep -qF "$library" && continue
    echo "test-gpu.sh: there is no $library"
    [ "$library" = libcuda.so.1 ] && { echo "test-gpu.sh: this machine has no NVIDIA driver, so nothing was tested; run it on a machine with a GPU" >&2; exit 1; }
  done
fi
plans="$build/plans"
if [ ! -d "$plans" ]; then
  plans="$build/test-gpu-plans"
  rm -rf "$plans"
  compile "$plans" || { echo "test-gpu.sh: hpc-opt could not make the plans; the reason stands above" >&2; exit 1; }
fi
exec python3 "$here/tools/test-gpu.py" "$build/bin/hpc-run" "$plans" "$build/test-gpu.json"
