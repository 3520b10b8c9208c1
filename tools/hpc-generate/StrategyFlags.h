// The flags about the choice of the next token, as the options of runtime/generate.
#pragma once

#include "runtime/generate/GenerationOptions.h"
#include "runtime/text/Tokenizer.h"
#include "tools/flags/Arguments.h"

namespace hpc {

/// `tokenizer`: null where there is none. Errors (Usage): a flag that the strategy does not read; --stop without a tokenizer. The vocabulary is checked by GenerationOptions::check.
Expected<generate::GenerationOptions> readStrategy(const Arguments &arguments, const text::Tokenizer *tokenizer);

} // namespace hpc
