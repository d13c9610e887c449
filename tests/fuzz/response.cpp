// The head of a server's answer, line by line, and its address.

#include "data/http_response.h"
#include "data/url.h"
#include "tests/fuzz/target.h"

using namespace towers;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string_view rest = fuzz::view(bytes, size);
  data::ResponseHead head;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string line(rest.substr(0, end));
    head.add_line(line);
    (void)data::parse_content_range(line);
    const std::string shown = data::without_credentials(line);
    const std::string host = shown.substr(0, shown.find_first_of("/?#", shown.find("://") + 3));
    if (data::scheme_of(line).starts_with("http") && host.find('@') != std::string::npos)
      fuzz::fail("credentials are left in " + shown);
    rest.remove_prefix(end);
  }
  (void)head.strong_etag();
  (void)data::describe_status(head.status);
  return 0;
}
