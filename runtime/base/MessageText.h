// The form of a message for people: names out of files are shortened, and no sign in them acts as a command. Called
// once, where an error is printed, so that messages need not care about names of ten megabytes.
#pragma once

#include <string>
#include <string_view>

namespace hpc {

/// Shortens text of more than 200 bytes between single quotes to its first and last bytes, with "..." between; likewise
/// a word of more than 1000 without quotes and a message of more than 20,000. Control characters are written as \n,
/// \x1b; newlines and tabs outside quotes stay.
std::string messageText(std::string_view message);

} // namespace hpc
