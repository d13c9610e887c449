#pragma once
// The parts of an address that matter to a download.

#include <string>

namespace towers::data {

// "http", "https", "file", ... in lower case; empty when `url` is none.
std::string scheme_of(const std::string& url);

// `url` without user name and password, for messages and files.
std::string without_credentials(const std::string& url);

}  // namespace towers::data
