// The meaning of each launcher's environment, alone and inside another's, and the errors where it does not add up. The
// tables go through launchers(): a new row needs a place in each.
#include "runtime/launch/Launch.h"

#include "runtime/launch/Launchers.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

using namespace hpc;
using launch::Launcher;
using launch::LauncherKind;
using launch::LaunchKind;
using testing::AllOf;
using testing::HasSubstr;

namespace {

using Variables = std::map<std::string, std::string>;

launch::Launch detect(const Variables &variables, const std::string &wanted = "auto",
                      const std::string &rendezvous = "") {
  return launch::detectLaunch(wanted, rendezvous, [&](const char *name) {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables with(Variables variables, const std::string &name, const std::string &value) {
  variables[name] = value;
  return variables;
}
Variables both(Variables one, const Variables &other) {
  one.insert(other.begin(), other.end());
  return one;
}

const Variables place = {{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};
const Variables byHand = both(place, {{"RANK", "2"}, {"WORLD_SIZE", "4"}});
const Variables slurm = {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "8"}};

/// The variables that a launcher sets for a process of several on one machine.
Variables of(const Launcher &launcher, int64_t process, int64_t count) {
  Variables variables;
  auto set = [&](const char *name, const std::string &value) {
    if (name)
      variables[name] = value;
  };
  set(launcher.mark, "7");
  set(launcher.process, std::to_string(process));
  set(launcher.processes, std::to_string(count));
  set(launcher.localProcess, std::to_string(process));
  set(launcher.localProcesses, std::to_string(count));
  set(launcher.groups, "1");
  return variables;
}
Variables of(LauncherKind kind, int64_t process, int64_t count) { return of(launch::launcherOf(kind), process, count); }

const char *nameOf(LauncherKind kind) {
  switch (kind) {
  case LauncherKind::Torchrun:
    return "torchrun";
  case LauncherKind::OpenMpi:
    return "Open MPI";
  case LauncherKind::Pmix:
    return "PMIx";
  case LauncherKind::Mvapich:
    return "MVAPICH";
  case LauncherKind::Mpich:
    return "MPICH";
  case LauncherKind::ByHand:
    return "by hand";
  case LauncherKind::Slurm:
    return "Slurm";
  }
  return "a launcher that nameOf() lacks";
}

/// Who is followed: the name of nameOf(), "alone", or "error".
std::string followed(const Variables &variables) {
  launch::Launch launch = detect(both(variables, place));
  if (!launch.status.ok())
    return "error";
  if (launch.kind == LaunchKind::None)
    return "alone";
  for (const Launcher &launcher : launch::launchers())
    if (launch.by == launcher.name)
      return nameOf(launcher.kind);
  return "'" + launch.by + "'";
}

} // namespace

// Every row: its numbers are those of the process; without one of its variables, or with one that is no number, the
// variable is named; one process alone runs alone.
TEST(Launch, EveryLauncherSaysWhoAProcessIs) {
  for (const Launcher &launcher : launch::launchers()) {
    SCOPED_TRACE(nameOf(launcher.kind));
    const Variables all = both(of(launcher, 2, 4), place);
    launch::Launch found = detect(all);
    ASSERT_TRUE(found.status.ok()) << found.status.text();
    EXPECT_EQ(found.by, launcher.name);
    EXPECT_EQ(found.kind, launcher.byMpi ? LaunchKind::Mpi : LaunchKind::Environment);
    EXPECT_EQ(found.process, 2);
    EXPECT_EQ(found.processes, launcher.processes ? 4 : 0);
    if (launcher.processes)
      EXPECT_EQ(followed(of(launcher, 0, 1)), "alone");
    EXPECT_EQ(detect(all, "none").kind, LaunchKind::None);

    for (const char *name : {launcher.mark, launcher.process, launcher.processes}) {
      const bool isOptional = !name || (launcher.kind == LauncherKind::Slurm && name == std::string(launcher.mark)) ||
                              (launcher.kind == LauncherKind::Torchrun && name == std::string(launcher.mark));
      if (isOptional) // a batch script of Slurm's is no task; without its mark torchrun's variables are set by hand
        continue;
      Variables less = all;
      less.erase(name);
      launch::Launch missing = detect(less);
      EXPECT_THAT(missing.status.text(), AllOf(HasSubstr("error[usage]: "), HasSubstr(name), HasSubstr("--launch=none")));
      EXPECT_EQ(missing.isNobody(), !launcher.byMpi);
    }
    for (const char *name : {launcher.process, launcher.processes, launcher.localProcess, launcher.localProcesses})
      for (const char *value : {"x", "-1", "1.5", "99999999999999999999"})
        if (name)
          EXPECT_THAT(detect(with(all, name, value)).status.text(), HasSubstr(std::string(name) + "='" + value + "' must be"));
    for (auto [name, value] : {std::pair(launcher.process, "4"), {launcher.localProcess, "4"}, {launcher.localProcesses, "5"}})
      if (name && (launcher.localProcesses || name == launcher.process) && launcher.processes)
        EXPECT_THAT(detect(with(all, name, value)).status.text(), HasSubstr(std::string(name) + "='" + value + "' must be"));
  }
}

// A part of a launcher's variables alone is none: LOCAL_RANK without RANK, RANK without WORLD_SIZE, and the reverse.
TEST(Launch, APartIsNoLauncher) {
  for (const Launcher &launcher : launch::launchers())
    for (const char *name : {launcher.process, launcher.processes, launcher.localProcess, launcher.localProcesses})
      if (name && launcher.kind != LauncherKind::Slurm && launcher.kind != LauncherKind::Torchrun)
        EXPECT_THAT(detect({{name, "1"}}).status.text(), HasSubstr(std::string(name) + " set, ")) << name;
  EXPECT_THAT(detect({{"RANK", "0"}}).status.text(), HasSubstr("RANK set, WORLD_SIZE not"));
  EXPECT_THAT(detect({{"WORLD_SIZE", "2"}}).status.text(), HasSubstr("WORLD_SIZE set, RANK not"));
  EXPECT_THAT(detect({{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}}).status.text(),
              HasSubstr("LOCAL_RANK, LOCAL_WORLD_SIZE set, RANK and WORLD_SIZE not"));
  // Beside a launcher that says everything a part may say the same: mpirun sh -c 'LOCAL_RANK=... hpc-run'.
  const Variables mpirun = of(LauncherKind::OpenMpi, 1, 4);
  EXPECT_EQ(followed(both(mpirun, {{"LOCAL_RANK", "0"}})), "Open MPI");
  EXPECT_EQ(followed(both(mpirun, {{"WORLD_SIZE", "4"}})), "Open MPI");
  EXPECT_THAT(detect(both(mpirun, {{"WORLD_SIZE", "8"}})).status.text(),
              HasSubstr("WORLD_SIZE=8 contradicts OMPI_COMM_WORLD_RANK=1 and OMPI_COMM_WORLD_SIZE=4"));
  EXPECT_THAT(detect(both(mpirun, {{"RANK", "0"}})).status.text(), HasSubstr("RANK=0 contradicts OMPI_COMM_WORLD_RANK=1"));
  EXPECT_THAT(detect(both(of(LauncherKind::OpenMpi, 0, 1), {{"WORLD_SIZE", "2"}})).status.text(),
              HasSubstr("WORLD_SIZE=2 contradicts OMPI_COMM_WORLD_RANK=0 and OMPI_COMM_WORLD_SIZE=1"));
}

// Every pair: the numbers of both are the same, differ, or one of the two started one process alone.
TEST(Launch, EveryPairIsOneLauncherInsideTheOtherOrAContradiction) {
  using Kind = LauncherKind;
  const Kind torchrun = Kind::Torchrun, openMpi = Kind::OpenMpi, pmix = Kind::Pmix, mvapich = Kind::Mvapich,
             mpich = Kind::Mpich, hand = Kind::ByHand, slurm = Kind::Slurm;
  struct Case {
    Kind one, other;
    /// Both are process 1 of 4; `one` is process 1 of 4 and `other` process 0 of 2; the reverse.
    const char *same, *more, *less;
  };
  const std::vector<Case> cases = {
      {torchrun, openMpi, "error", "error", "error"}, // neither variable says which of the two is inside
      {torchrun, pmix, "torchrun", "torchrun", "torchrun"},
      {torchrun, mvapich, "error", "error", "error"},
      {torchrun, mpich, "error", "error", "error"},
      {torchrun, slurm, "torchrun", "torchrun", "torchrun"},
      {openMpi, pmix, "Open MPI", "error", "error"}, // mpirun speaks PMIx
      {openMpi, mvapich, "Open MPI", "error", "error"},
      {openMpi, mpich, "Open MPI", "error", "error"},
      {openMpi, hand, "Open MPI", "error", "error"},
      {openMpi, slurm, "Open MPI", "Open MPI", "Open MPI"}, // its daemons are tasks
      {pmix, mvapich, "PMIx", "error", "error"},
      {pmix, mpich, "PMIx", "error", "error"},
      {pmix, hand, "by hand", "by hand", "by hand"},
      {pmix, slurm, "PMIx", "PMIx", "PMIx"},
      {mvapich, mpich, "MVAPICH", "error", "error"},
      {mvapich, hand, "MVAPICH", "error", "error"},
      {mvapich, slurm, "MVAPICH", "MVAPICH", "MVAPICH"},
      {mpich, hand, "MPICH", "error", "error"},
      {mpich, slurm, "MPICH", "MPICH", "MPICH"},
      {hand, slurm, "by hand", "by hand", "error"}, // two processes in each of two tasks
  };
  int64_t kinds = int64_t(launch::launchers().size());
  EXPECT_EQ(int64_t(cases.size()), kinds * (kinds - 1) / 2 - 1) << "torchrun and by hand have the same variables";
  for (const Case &one : cases) {
    SCOPED_TRACE(std::string(nameOf(one.one)) + ", " + nameOf(one.other));
    EXPECT_EQ(followed(both(of(one.one, 1, 4), of(one.other, 1, 4))), one.same);
    EXPECT_EQ(followed(both(of(one.one, 1, 4), of(one.other, 0, 2))), one.more);
    EXPECT_EQ(followed(both(of(one.one, 0, 2), of(one.other, 1, 4))), one.less);
    if (one.one != pmix && one.other != pmix) {
      const bool isDaemon = one.other == slurm && one.one != torchrun && one.one != hand;
      EXPECT_EQ(followed(both(of(one.one, 0, 1), of(one.other, 1, 4))), isDaemon ? "alone" : nameOf(one.other));
      EXPECT_EQ(followed(both(of(one.one, 1, 4), of(one.other, 0, 1))), nameOf(one.one));
      EXPECT_EQ(followed(both(of(one.one, 0, 1), of(one.other, 0, 1))), "alone");
    }
  }
}

// One torchrun for each process of mpirun, srun or mpiexec; and processes that a script of each starts by hand.
TEST(Launch, EvidenceOfWhoIsInside) {
  for (LauncherKind outer : {LauncherKind::OpenMpi, LauncherKind::Mvapich, LauncherKind::Mpich, LauncherKind::Slurm}) {
    Variables agents = both(with(of(LauncherKind::Torchrun, 5, 8), "GROUP_WORLD_SIZE", "2"), of(outer, 0, 2));
    EXPECT_EQ(followed(agents), "torchrun");
    Variables script = {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}};
    EXPECT_EQ(followed(both(script, of(outer, 1, 2))), "by hand");
    EXPECT_EQ(followed(both(with(script, "LOCAL_WORLD_SIZE", "2"), of(outer, 1, 2))),
              outer == LauncherKind::Slurm ? "by hand" : "error");
  }
  const Variables contradiction = both(of(LauncherKind::OpenMpi, 1, 4), byHand);
  EXPECT_THAT(detect(contradiction).status.text(),
              HasSubstr("OMPI_COMM_WORLD_RANK=1 and OMPI_COMM_WORLD_SIZE=4 (mpirun) contradict RANK=2 and WORLD_SIZE=4 "
                        "(by hand): it is not known which is the inner launcher; say --launch=mpi or --launch=env"));
  EXPECT_EQ(detect(contradiction, "mpi").process, 1);
  EXPECT_EQ(detect(contradiction, "env").process, 2);
}

// A name that is read and not documented would be found by nobody.
TEST(Launch, TheDocumentNamesEveryVariable) {
  const std::string document = TemporaryFolder::read(HPC_SOURCE_DIR "/docs/launch.md");
  for (const Launcher &launcher : launch::launchers())
    for (const char *name : {launcher.mark, launcher.process, launcher.processes, launcher.processesOfOld,
                             launcher.localProcess, launcher.localProcesses, launcher.groups})
      if (name)
        EXPECT_THAT(document, HasSubstr("`" + std::string(name) + "`"));
}

TEST(Launch, PlacesToMeet) {
  launch::Launch env = detect(byHand);
  EXPECT_EQ(env.process, 2);
  EXPECT_EQ(env.processes, 4);
  EXPECT_EQ(env.host, "10.0.0.1");
  EXPECT_EQ(env.port, 29500);
  EXPECT_FALSE(env.atAgent);
  launch::Launch six = detect(slurm, "auto", "[2001:db8::1]:4711");
  EXPECT_EQ(six.kind, LaunchKind::Environment);
  EXPECT_EQ(six.host, "2001:db8::1");
  EXPECT_EQ(six.port, 4711);
  EXPECT_EQ(six.process, 1);
  EXPECT_EQ(six.processes, 8);
  for (LauncherKind kind : {LauncherKind::Mpich, LauncherKind::Mvapich, LauncherKind::Slurm, LauncherKind::Torchrun}) {
    EXPECT_THAT(detect(of(kind, 1, 4)).status.text(),
                HasSubstr(" has started 4 processes, which do not know where to meet; give --rendezvous=HOST:PORT"));
    EXPECT_EQ(detect(of(kind, 1, 4), "auto", "localhost:4711").port, 4711);
    EXPECT_EQ(detect(both(of(kind, 1, 4), place), "auto", "localhost:4711").host, "localhost");
  }
}

// The agent's store is at MASTER_PORT where it says so; --rendezvous does without it. Workers of one agent are on one
// machine, whatever its name stands for.
TEST(Launch, TheAgentOfTorchrun) {
  Variables agent = both(of(LauncherKind::Torchrun, 1, 4), place);
  launch::Launch direct = detect(agent);
  EXPECT_FALSE(direct.atAgent);
  EXPECT_TRUE(direct.oneMachine);
  EXPECT_EQ(direct.host, "127.0.0.1");
  agent["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  launch::Launch store = detect(agent);
  EXPECT_TRUE(store.atAgent);
  EXPECT_EQ(store.runId, "7");
  EXPECT_EQ(store.port, 29500);
  EXPECT_FALSE(detect(agent, "auto", "localhost:1").atAgent);
  EXPECT_FALSE(detect(with(agent, "TORCHELASTIC_USE_AGENT_STORE", "False")).atAgent);
  launch::Launch several = detect(with(agent, "GROUP_WORLD_SIZE", "2"));
  EXPECT_EQ(several.host, "10.0.0.1");
  EXPECT_FALSE(several.oneMachine);
}

TEST(Launch, ShellsOfSlurmAreNoTasks) {
  EXPECT_EQ(followed({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), "alone");
  EXPECT_EQ(followed({{"SLURM_STEP_ID", "4294967290"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), "alone");
  EXPECT_EQ(followed(slurm), "Slurm");
  EXPECT_EQ(followed(with(slurm, "SLURM_STEP_NUM_TASKS", "1")), "error") << "SLURM_PROCID=1 of one";
  EXPECT_EQ(followed(both({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}, slurm)), "alone");
}

// Who knows where to meet, but not who it is, still tells the others; the mark of it is the number -1.
TEST(Launch, NobodyKnowsThePlace) {
  launch::Launch nobody = detect(both(place, {{"RANK", "5"}, {"WORLD_SIZE", "4"}}));
  EXPECT_TRUE(nobody.isNobody());
  EXPECT_EQ(nobody.kind, LaunchKind::Environment);
  EXPECT_EQ(nobody.host, "10.0.0.1");
  EXPECT_THAT(nobody.status.text(), HasSubstr("RANK='5' must be a number from 0 to 3"));
  EXPECT_TRUE(detect({{"RANK", "5"}}, "auto", "localhost:4711").isNobody());
  EXPECT_EQ(detect({{"RANK", "5"}}).kind, LaunchKind::None);
  EXPECT_EQ(detect(both(place, {{"OMPI_COMM_WORLD_RANK", "5"}})).kind, LaunchKind::None);
}

TEST(Launch, WhatIsMissingOrWrongIsNamed) {
  auto text = [](const launch::Launch &launch) { return launch.status.text(); };
  EXPECT_THAT(text(detect({}, "mpi")), HasSubstr("error[usage]: --launch=mpi, but no MPI launcher"));
  EXPECT_THAT(text(detect({}, "env")), HasSubstr("RANK is not set"));
  EXPECT_THAT(text(detect({{"RANK", "0"}}, "env")), HasSubstr("RANK set, WORLD_SIZE not"));
  EXPECT_THAT(text(detect(with(byHand, "MASTER_PORT", "70000"))), HasSubstr("from 1 to 65535"));
  EXPECT_THAT(text(detect(with(byHand, "MASTER_ADDR", ""))), HasSubstr("do not know where to meet"));
  EXPECT_THAT(text(detect(slurm)), HasSubstr("srun has started 8 processes, which do not know where to meet"));
  EXPECT_THAT(text(detect(slurm, "auto", "host")), HasSubstr("--rendezvous='host' must be HOST:PORT"));
  EXPECT_THAT(text(detect({}, "auto", "host:1")), HasSubstr("nothing says which process this is"));
  EXPECT_THAT(text(detect({}, "none", "host:1")), HasSubstr("does not go with --launch=none"));
  EXPECT_EQ(detect({}).kind, LaunchKind::None);
  EXPECT_EQ(detect(of(LauncherKind::OpenMpi, 0, 1), "mpi").kind, LaunchKind::Mpi);
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
