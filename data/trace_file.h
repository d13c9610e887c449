#pragma once
// A recorded timeline as a file in the Trace Event Format, which Perfetto (ui.perfetto.dev) and
// chrome://tracing open. docs/formats/trace.md has the format.

#include <filesystem>

#include "core/trace.h"

namespace towers::data {

// Changes nothing. A folder that cannot be written, or a file there that is no such timeline, is an
// Error with path and reason.
void check_trace_file(const std::filesystem::path& path);

// Whether a file there begins as such a timeline does.
bool is_trace_file(const std::filesystem::path& path);

// Whole or not at all; replaces an earlier one. Throws Error with path and reason.
void write_trace_file(const std::filesystem::path& path, Trace trace);

}  // namespace towers::data
