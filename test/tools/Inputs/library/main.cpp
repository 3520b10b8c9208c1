// Compiles a model for two tensor-parallel ranks and runs it on threads, by the installed library.
#include "passes/Driver/Compilation.h"
#include "runtime/backend/host/HostBackend.h"
#include "runtime/core/Session.h"

#include <cstdio>

static int fail(const hpc::Status &status) {
  std::fprintf(stderr, "%s\n", status.text().c_str());
  return status.exitCode();
}

int main(int, char **argv) {
  hpc::CompileRequest request;
  request.input = argv[1];
  request.dims = {{"batch", 2}};
  request.degrees = {{"tp", 2}};
  request.verify = true;
  hpc::Expected<hpc::CompiledPlan> compiled = hpc::compile(request);
  if (!compiled.ok())
    return fail(compiled.status());
  hpc::Expected<std::unique_ptr<hpc::Session>> session = hpc::Session::create(compiled->plan, hpc::host::createHostBackend(), {});
  if (!session.ok())
    return fail(session.status());
  hpc::Array input = hpc::Array::zeros(compiled->plan.inputs[0].dtype, compiled->plan.inputs[0].shape);
  hpc::Expected<std::vector<hpc::Array>> outputs = (*session)->run({input});
  if (!outputs.ok())
    return fail(outputs.status());
  std::printf("%.9g on %lld ranks, %s", (*outputs)[0].as<float>()[0], (long long)compiled->plan.worldSize(), compiled->verified.c_str());
  return 0;
}
