// What a message becomes before a person reads it: names out of files are quoted in part, and no sign in them is taken as a command.
// Called once, where an error is printed, so that no message needs to think of names of ten megabytes.
#pragma once

#include <string>
#include <string_view>

namespace hpc {

/// Of more than 200 bytes between single quotes, the first and the last, with "..." between; likewise of a word of more than
/// 1000 without quotes and of a message of more than 20,000. Control characters are written as \n, \x1b; lines and tabs outside
/// quotes stay.
std::string messageText(std::string_view message);

} // namespace hpc
