#!/usr/bin/env bash
# Sets up, builds and runs every test: lit, GoogleTest, a sample of the models' equality grid, random graphs. The last line is
# `N passed, N failed, N skipped` over all suites; the exit status is 1 where anything failed.
#
#   tools/test.sh [--all] [--sanitize=address|thread] [--sample=N]
#
# address: everything of ours is instrumented. thread: hpc-run and the tests of the runtime are; plans come from the ordinary hpc-opt, since
# LLVM's own threads are not instrumented. --all: every case of the grids, of which a run of every day takes a sample, and 1,000 random graphs; about two hours. Tests that need ../shared are reported as skipped if it is missing.
set -uo pipefail
cd "$(dirname "$0")/.."

sanitize="" sample="" all=""
for argument in "$@"; do
  case "$argument" in
  --sanitize=address | --sanitize=thread) sanitize="${argument#*=}" ;;
  --all) all=1 && export HPC_TEST_ALL=1 ;;
  --sample=*) sample="${argument#*=}" ;;
  *) echo "test.sh: unknown option $argument; usage: tools/test.sh [--all] [--sanitize=address|thread] [--sample=N]" >&2; exit 1 ;;
  esac
done

passed=0 failed=0 skipped=0
add() { # name passed failed skipped
  echo "test.sh: $1: $2 passed, $3 failed, $4 skipped, ${SECONDS} s since the start"
  passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
}
finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
  exit
}

# The tests of an executable in as many shards as there are cores, at most four, at the same time.
unit_tests() { # build names...
  local build="$1" shards name shard code p f s
  shards=$(nproc) && [ "$shards" -le 4 ] || shards=4
  shift
  for name in "$@"; do
    [ -x "$build/bin/$name" ] || { echo "test.sh: $build/bin/$name was not built"; add "$name" 0 1 0; continue; }
    rm -f "$build/$name".*.json
    local processes=() logs=() results=()
    for ((shard = 0; shard < shards; ++shard)); do
      logs+=("$build/$name.$shard.err") results+=("$build/$name.$shard.json")
      GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard \
        "$build/bin/$name" --gtest_brief=1 --gtest_output="json:${results[shard]}" 2>"${logs[shard]}" &
      processes+=($!)
    done
    local bad=0
    for ((shard = 0; shard < shards; ++shard)); do
      wait "${processes[shard]}"
      code=$?
      [ "$code" -eq 0 ] && continue
      bad=1
      echo "test.sh: $build/bin/$name exited with $code; the end of ${logs[shard]}:"
      tail -n 60 "${logs[shard]}"
    done
    read -r p f s < <(/usr/bin/python3 test/results.py gtest "${results[@]}")
    # A leak or a race that is reported at exit fails no single test.
    [ "$bad" -eq 0 ] || [ "$f" -gt 0 ] || f=1
    add "$name" "$p" "$f" "$s"
  done
}

lit() { # build
  local build="$1"
  rm -f "$build/lit.json"
  /usr/lib/llvm-22/bin/lit -q -v -o "$build/lit.json" "$build/test" || true
  read -r p f s < <(/usr/bin/python3 test/results.py lit "$build/lit.json")
  add lit "$p" "$f" "$s"
}

cases() { # name, build, script, options: what prints its failures and a last line `N passed, N failed, N skipped`; $python runs it
  local name="$1" log="$2/cases.log" p f s
  shift 2
  "${python:-/usr/bin/python3}" "$@" | tee "$log" | sed '$d' # its last line is counted, not shown
  if [[ "$(tail -n 1 "$log")" =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
    p="${BASH_REMATCH[1]}" f="${BASH_REMATCH[2]}" s="${BASH_REMATCH[3]}"
    add "$name" "$p" "$f" "$s"
  else
    add "$name" 0 1 0
  fi
}
sampled() { # a number of cases: what a grid is given
  [ -n "$all" ] || echo "--sample=$1"
}
grid() { # build, options of grid.py
  local build="$1"
  shift
  cases "equality grid" "$build" test/models/grid.py "$@"
}
device_grid() { # build: on the stand-in for a GPU, all ranks on one
  HPC_CUDA_LIBRARIES="$1/test/gpu/standin" cases "equality grid, GPU's stand-in" "$1" test/models/grid.py --bin="$1/bin" --gpu --no-verify $(sampled 24)
}
shared_grid() { # build: other exporters' files, where they are
  if [ -d ../shared/models ]; then
    cases "exports in ../shared" "$1" test/models/grid.py --shared $(sampled 72)
  else
    add "exports in ../shared" 0 0 72
  fi
}
processes() { # build
  cases processes "$1" test/processes/processes.py --bin="$1/bin" $([ -n "$all" ] || echo --sample=3)
}
random_graphs() { # build, options of graphs.py
  local build="$1" python
  shift
  if python="$(test/environment.sh 2>/dev/null)"; then
    cases "random graphs, with ONNX Runtime" "$build" test/random/graphs.py --bin="$build/bin" --keep="$build/random" --reference=onnxruntime "$@"
  else
    python="" cases "random graphs" "$build" test/random/graphs.py --bin="$build/bin" --keep="$build/random" "$@"
    add "ONNX Runtime beside them" 0 0 1
  fi
}
random_gradients() { # build
  local python
  if python="$(test/environment.sh)"; then
    cases "random gradients, with PyTorch" "$1" test/random/gradients.py --bin="$1/bin" --keep="$1/random"
  else
    add "random gradients, with PyTorch" 0 0 100
  fi
}

# Tests compile the same kernels many times; what this run has compiled serves all of it.
keep_kernels() { # build
  rm -rf "$1/kernel-cache"
  export HPC_KERNEL_CACHE="$PWD/$1/kernel-cache"
}

case "$sanitize" in
thread)
  tools/setup.sh hpc-opt || exit 1
  tools/setup.sh --sanitize=thread hpc-run hpc-unit-runtime || exit 1
  keep_kernels build-thread
  export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1"
  unit_tests build-thread hpc-unit-runtime
  grid build-thread --run-bin=build-thread/bin --no-verify --sample="${sample:-24}"
  ;;
address)
  tools/setup.sh --sanitize=address || exit 1
  # The packaged LLVM is not instrumented: containers and arenas that it and our code share are marked by one side only.
  export ASAN_OPTIONS="detect_container_overflow=0:allow_user_poisoning=0:detect_stack_use_after_return=1"
  export UCX_MEM_EVENTS=no # its hooks of mmap jump into the middle of the sanitizer's own
  mapfile -t units < <(grep . build-address/unit-tests.txt)
  keep_kernels build-address
  unit_tests build-address "${units[@]}"
  lit build-address
  grid build-address --bin=build-address/bin --sample="${sample:-12}"
  random_graphs build-address --count=30
  ;;
*)
  tools/setup.sh --packages-only || exit 1
  mkdir -p build
  test/environment.sh --make >/dev/null & # beside the build
  tools/setup.sh || exit 1
  wait $!
  mapfile -t units < <(grep . build/unit-tests.txt)
  keep_kernels build
  unit_tests build "${units[@]}"
  lit build
  grid build $(sampled "${sample:-24}")
  device_grid build
  shared_grid build
  processes build
  random_graphs build ${all:+--count=1000}
  random_gradients build
  ;;
esac
finish
