// What each launcher's environment means, and what is said where it does not add up.
#include "runtime/launch/Launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

using namespace hpc;
using launch::LaunchKind;
using testing::HasSubstr;

namespace {

using Variables = std::map<std::string, std::string>;

Expected<launch::Launch> detect(const Variables &variables, const std::string &wanted = "auto",
                                const std::string &rendezvous = "") {
  return launch::detectLaunch(wanted, rendezvous, [&](const char *name) {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}
const Variables torchrun = {{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};
const Variables slurm = {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "8"}};

Variables with(Variables variables, const std::string &name, const std::string &value) {
  variables[name] = value;
  return variables;
}

} // namespace

TEST(Launch, EachStarterIsRecognised) {
  EXPECT_EQ(detect({})->kind, LaunchKind::None);
  EXPECT_EQ(detect({{"OMPI_COMM_WORLD_SIZE", "4"}})->kind, LaunchKind::Mpi);
  EXPECT_EQ(detect({{"OMPI_COMM_WORLD_SIZE", "1"}})->kind, LaunchKind::None);
  EXPECT_EQ(detect({{"PMIX_NAMESPACE", "x"}})->kind, LaunchKind::Mpi);
  launch::Launch env = *detect(torchrun);
  EXPECT_EQ(env.kind, LaunchKind::Environment);
  EXPECT_EQ(env.process, 2);
  EXPECT_EQ(env.processes, 4);
  EXPECT_EQ(env.host, "10.0.0.1");
  EXPECT_EQ(env.port, 29500);
  EXPECT_EQ(detect(with(torchrun, "WORLD_SIZE", "1"), "none")->kind, LaunchKind::None);
  launch::Launch six = *detect(slurm, "auto", "[2001:db8::1]:4711");
  EXPECT_EQ(six.kind, LaunchKind::Environment);
  EXPECT_EQ(six.host, "2001:db8::1");
  EXPECT_EQ(six.port, 4711);
  EXPECT_EQ(six.process, 1);
  // mpirun inside a torchrun-like environment: MPI knows better. A batch script of Slurm is no step.
  EXPECT_EQ(detect(with(torchrun, "OMPI_COMM_WORLD_SIZE", "4"))->kind, LaunchKind::Mpi);
  EXPECT_EQ(detect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}})->kind, LaunchKind::None);
  EXPECT_EQ(detect({{"RANK", "0"}, {"WORLD_SIZE", "1"}})->kind, LaunchKind::None);
}

TEST(Launch, WhatIsMissingOrWrongIsNamed) {
  auto text = [](const Expected<launch::Launch> &launch) { return launch.status().text(); };
  EXPECT_THAT(text(detect({}, "mpi")), HasSubstr("error[usage]: --launch=mpi, but no MPI launcher"));
  EXPECT_THAT(text(detect({}, "env")), HasSubstr("RANK is not set"));
  EXPECT_THAT(text(detect({{"RANK", "0"}}, "env")), HasSubstr("WORLD_SIZE is not set"));
  EXPECT_THAT(text(detect(with(torchrun, "RANK", "4"))), HasSubstr("RANK='4' must be a number from 0 to 3"));
  EXPECT_THAT(text(detect(with(torchrun, "RANK", "-1"))), HasSubstr("RANK='-1'"));
  EXPECT_THAT(text(detect(with(torchrun, "WORLD_SIZE", "99999999999999999999"))), HasSubstr("WORLD_SIZE="));
  EXPECT_THAT(text(detect(with(torchrun, "MASTER_PORT", "70000"))), HasSubstr("from 1 to 65535"));
  EXPECT_THAT(text(detect(with(torchrun, "MASTER_ADDR", ""))), HasSubstr("do not know where to meet"));
  EXPECT_THAT(text(detect(slurm)), HasSubstr("srun has started 8 processes, which do not know where to meet"));
  EXPECT_THAT(text(detect(slurm, "auto", "host")), HasSubstr("--rendezvous='host' must be HOST:PORT"));
  EXPECT_THAT(text(detect({}, "auto", "host:1")), HasSubstr("nothing says which process this is"));
  EXPECT_THAT(text(detect({}, "none", "host:1")), HasSubstr("does not go with --launch=none"));
}

TEST(Launch, ProcessesShareTheRanksEqually) {
  for (int64_t world = 1; world <= 24; ++world)
    for (int64_t processes = 1; processes <= 25; ++processes) {
      Expected<int64_t> each = launch::ranksPerProcess(world, processes);
      ASSERT_EQ(each.ok(), world % processes == 0);
      if (each.ok())
        EXPECT_EQ(*each * processes, world);
    }
  EXPECT_THAT(launch::ranksPerProcess(6, 4).status().text(),
              HasSubstr("the plan has 6 ranks, which 4 processes cannot share equally; start 1, 2, 3 or 6 processes"));
}
