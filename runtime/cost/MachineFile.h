// Machines as JSON: files of users, the machines that come with the compiler, and the text that travels in `hpc.options`. Every field that is
// missing, unknown, doubled or out of range is an error; docs/machine.schema.json and docs/machines.md describe the format.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/cost/Machine.h"

#include <string>
#include <string_view>
#include <vector>

namespace hpc::cost {

/// `name`: of the file, for messages. Errors (Usage): text that is not JSON; what checkMachine refuses.
Expected<Machine> parseMachine(std::string_view text, const std::string &name);

/// A shipped machine by its name, else a file. Errors: neither is there (with the list of names); those of parseMachine.
Expected<Machine> readMachine(const std::string &nameOrPath);

/// The names that readMachine has machines for, sorted.
std::vector<std::string> shippedMachines();

/// The range of every number, and that they agree with each other. Errors (Usage): field, value and range. A machine that passes is one that
/// parseMachine gives.
Status checkMachine(const Machine &machine);

/// JSON in a fixed order, in one line: parseMachine(machineText(m)) has the same numbers as m.
std::string machineText(const Machine &machine);
/// The same with lines and indents, as files have it.
std::string machineFileText(const Machine &machine);

} // namespace hpc::cost
