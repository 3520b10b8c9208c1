#include "tools/running/TextData.h"

#include "runtime/base/Cores.h"
#include "runtime/base/CountText.h"
#include "runtime/base/FileKind.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <numeric>

namespace hpc {

static Status dataUsage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

/// "969,30,1", one to three numbers of 0 or more, as shares of 1; none where the text is something else.
static std::vector<double> sharesOf(const std::string &text) {
  std::vector<double> shares;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    double share = 0;
    auto [next, error] = std::from_chars(at, end, share);
    if (error != std::errc() || !std::isfinite(share) || share < 0 || (next != end && *next != ','))
      return {};
    shares.push_back(share);
    if (next == end)
      break;
    at = next + 1;
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (shares.size() > 3 || !(sum > 0) || !std::isfinite(sum))
    return {};
  for (double &share : shares)
    share /= sum;
  shares.resize(3, 0);
  return shares;
}

TextFlags readTextFlags(const Arguments &arguments) {
  TextFlags flags;
  flags.tokenizer = arguments.text("tokenizer");
  flags.tokenCache = arguments.text("token-cache");
  flags.documents.textKey = arguments.text("text-key");
  flags.documents.skipBadLines = arguments.has("skip-bad-lines");
  flags.pad = arguments.has("pad");
  flags.trainPadding = arguments.has("train-padding");
  flags.padToken = arguments.whole("pad-token");
  flags.shuffle = arguments.has("shuffle");
  flags.dropLast = arguments.has("drop-last");
  flags.binBits = arguments.text("bin-bits").empty() ? 0 : std::stoll(arguments.text("bin-bits"));
  flags.shares = sharesOf(arguments.text("split"));
  for (const Flag *flag : arguments.given(group::data))
    flags.given.push_back(flag->dashed());
  return flags;
}

Status checkTextFlags(const Arguments &arguments, bool trains) {
  const std::string split = arguments.text("split");
  for (auto [one, other] : {std::pair("pack", "pad"), {"shuffle", "no-shuffle"}, {"pack", "train-padding"}, {"pack", "pad-token"}})
    if (arguments.has(one) && arguments.has(other))
      return dataUsage(std::string("--") + one + " does not go with --" + other + "; leave one of them out");
  for (const char *flag : {"train-padding", "pad-token"})
    if (arguments.has(flag) && !arguments.has("pad"))
      return dataUsage(std::string("--") + flag + " is about rows that are padded; add --pad, or leave it out");
  for (const char *flag : {"shuffle", "no-shuffle", "drop-last"})
    if (!trains && arguments.has(flag))
      return dataUsage(std::string("--evaluate alone reads each row once, in order; leave out --") + flag + ", or add --train");
  if (arguments.has("split") && sharesOf(split).empty())
    return dataUsage("--split=" + split + " must be up to three shares of 0 or more, for training, validation and test, as 969,30,1");
  if (arguments.has("split") && trains && arguments.has("evaluate"))
    return dataUsage("--split takes the held-out rows from --data, and --evaluate names a file of them; leave one of them out");
  return Status::success();
}

Status TextData::openTokenizer(std::vector<std::string> &notes) {
  if (tokenizer || flags.tokenizer.empty())
    return Status::success();
  Expected<std::unique_ptr<text::Tokenizer>> opened = text::Tokenizer::open(flags.tokenizer);
  HPC_RETURN_IF_ERROR(opened.status().at("--tokenizer"));
  tokenizer = std::move(*opened);
  if (!tokenizer->end())
    notes.push_back("note: --tokenizer=" + flags.tokenizer + " has no token that ends a document, so documents follow each other without one");
  return Status::success();
}

static Status checkVocabulary(const text::Tokenizer &tokenizer, const std::string &path, const plan::Plan &plan) {
  for (const plan::Port &port : plan.inputs)
    for (const plan::Lookup &lookup : port.lookups)
      if (lookup.high < tokenizer.size())
        return dataUsage("--tokenizer=" + path + " has " + countText(tokenizer.size(), "token") + ", and " + lookup.reader + " takes ids to " +
                         std::to_string(lookup.high - 1) + " from input '" + port.name + "'; give the tokenizer of this model");
  return Status::success();
}

static Status checkIds(const text::TokenArray &tokens, const IdRange &range) {
  const int64_t outside = tokens.findOutside(range.low, range.high);
  if (outside < 0)
    return Status::success();
  int64_t token = 0;
  tokens.take(outside, 1, &token);
  return dataUsage("'" + tokens.path() + "': token " + std::to_string(outside) + " is " + std::to_string(token) + "; " +
                   (range.reader.empty() ? "ids are from " + std::to_string(range.low) + " to " + std::to_string(range.high - 1) : range.reader) +
                   "; mend the data, or see whether they were made for another model");
}

Expected<text::TokenArray> TextData::tokensOf(const std::string &path, const plan::Plan &plan, uint64_t &fingerprint, std::vector<std::string> &notes) {
  std::error_code error;
  const bool isThere = std::filesystem::exists(path, error);
  Expected<text::TextKind> kind = isThere ? text::textKindOf(path) : text::TextKind::None; // Megatron's files have one name without an ending
  HPC_RETURN_IF_ERROR(kind.status());
  if (*kind == text::TextKind::None) {
    const IdRange range = idRangeOf(plan);
    Expected<text::TokenArray> tokens = text::TokenArray::open(path, {flags.binBits, range.reader.empty() ? INT64_MAX : range.high}, notes);
    HPC_RETURN_IF_ERROR(tokens.status());
    HPC_RETURN_IF_ERROR(checkIds(*tokens, range));
    fingerprint = tokens->fingerprint();
    return tokens;
  }
  hasText = true;
  if (!tokenizer)
    return dataUsage("'" + path + "' is text; add --tokenizer=FOLDER, the tokenizer of the model, as save_pretrained writes it");
  HPC_RETURN_IF_ERROR(checkVocabulary(*tokenizer, flags.tokenizer, plan));
  Expected<text::TokenFile> file = text::tokenize(path, *tokenizer, flags.documents, flags.tokenCache, availableCores());
  HPC_RETURN_IF_ERROR(file.status());
  if (file->isNew)
    notes.push_back("note: '" + path + "': " + countText(file->tokens, "token") + " of " + countText(file->documents, "document") + ", kept in '" + file->path +
                    "'" + (file->badLines ? "; " + countText(file->badLines, "bad line") + " left out" : ""));
  else if (flags.documents.skipBadLines)
    notes.push_back("note: '" + path + "': its tokens were kept in '" + file->path + "' without its bad lines");
  fingerprint = file->identity;
  return text::TokenArray::open(file->path, {}, notes);
}

RowRange TextData::rangeOf(DataPart part) const {
  if (flags.shares.empty())
    return {};
  const double begin[] = {0, flags.shares[0], flags.shares[0] + flags.shares[1], 1};
  return {begin[int(part)], begin[int(part) + 1]};
}

/// The file of all arrays, where it is the only one.
static bool isArchive(const std::vector<text::DataFiles> &groups) {
  if (groups.size() != 1 || groups[0].paths.size() != 1)
    return false;
  Expected<MappedFile> file = MappedFile::open(groups[0].paths[0]);
  const FileKind kind = file.ok() ? fileKindOf(file->text()) : FileKind::Unknown;
  return kind == FileKind::Npz || kind == FileKind::Zip;
}

Expected<std::unique_ptr<StepData>> TextData::open(const std::string &names, const plan::Plan &plan, DataPart part, const DataStart &start, std::vector<std::string> &notes) {
  Expected<std::vector<text::DataFiles>> groups = text::dataFilesOf(names);
  HPC_RETURN_IF_ERROR(groups.status());
  std::optional<int64_t> shuffleSeed;
  if (flags.shuffle && part == DataPart::Training)
    shuffleSeed = start.seed;
  if (isArchive(*groups)) {
    Expected<Batches> batches = Batches::open(plan, groups->front().paths[0], {shuffleSeed, rangeOf(part)}, notes);
    HPC_RETURN_IF_ERROR(batches.status());
    return std::unique_ptr<StepData>(std::make_unique<Batches>(std::move(*batches)));
  }
  hasRows = true;
  HPC_RETURN_IF_ERROR(openTokenizer(notes));
  std::vector<TokenSource> sources;
  for (const text::DataFiles &group : *groups) {
    TokenSource source{{}, group.weight, 0};
    for (const std::string &path : group.paths) {
      uint64_t fingerprint = 0;
      Expected<text::TokenArray> tokens = tokensOf(path, plan, fingerprint, notes);
      HPC_RETURN_IF_ERROR(tokens.status());
      source.fingerprint = source.fingerprint * 31 + fingerprint;
      source.files.push_back(std::move(*tokens));
    }
    sources.push_back(std::move(source));
  }
  RowOptions options;
  options.pad = flags.pad;
  options.trainPadding = flags.trainPadding;
  options.shuffleSeed = shuffleSeed;
  options.dropLast = flags.dropLast && part == DataPart::Training;
  options.once = part != DataPart::Training;
  options.range = rangeOf(part);
  if (part == DataPart::Training) {
    options.stepsBefore = start.steps;
    options.samplesBefore = start.samples;
  }
  std::optional<int64_t> padToken = flags.padToken;
  for (std::optional<int32_t> own : {tokenizer ? tokenizer->pad() : std::nullopt, tokenizer ? tokenizer->end() : std::nullopt})
    if (!padToken && own)
      padToken = own;
  if (options.pad && !padToken)
    return dataUsage(flags.tokenizer.empty() ? "--pad fills rows up with the token that ends a document, and no --tokenizer says which it is; add it, or --pad-token=ID"
                                             : "--pad: the tokenizer has neither a token for padding nor one that ends a document; give --pad-token=ID");
  options.padToken = padToken.value_or(0);
  if (const IdRange range = idRangeOf(plan); options.pad && (options.padToken < range.low || options.padToken >= range.high))
    return dataUsage("--pad: the token that fills rows up is " + std::to_string(options.padToken) + "; " + range.reader + "; give another by --pad-token=ID");
  Expected<TokenRows> rows = TokenRows::open(plan, std::move(sources), options, notes);
  HPC_RETURN_IF_ERROR(rows.status());
  return std::unique_ptr<StepData>(std::make_unique<TokenRows>(std::move(*rows)));
}

Status TextData::checkUsed() const {
  for (const std::string &flag : flags.given) {
    const bool isOfText = flag == "--text-key" || flag == "--skip-bad-lines" || flag == "--token-cache" || (flag == "--tokenizer" && !flags.pad);
    const bool isOfAll = flag == "--shuffle" || flag == "--no-shuffle" || flag == "--split";
    if (isOfText && !hasText)
      return dataUsage(flag + " is about files of text (.txt, .jsonl), and no data is one; leave it out");
    if (!isOfText && !isOfAll && !hasRows)
      return dataUsage(flag + " is about streams of tokens, and no data is one; leave it out");
  }
  return Status::success();
}

} // namespace hpc
