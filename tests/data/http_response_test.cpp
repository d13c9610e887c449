// Small parts of a download: heads of answers, addresses, digests.

#include "data/http_response.h"

#include <catch2/catch.hpp>

#include "archive_builder.h"
#include "data/url.h"

namespace towers::test {

TEST_CASE("Content-Range is read, and nothing malformed is") {
  const auto range = data::parse_content_range("bytes 100-199/1000");
  REQUIRE(range);
  CHECK(range->first == 100);
  CHECK(range->last == 199);
  CHECK(range->total == 1000);
  CHECK_FALSE(range->unsatisfied);
  CHECK(data::parse_content_range("Bytes 0-0/1")->total == 1);
  CHECK_FALSE(data::parse_content_range("bytes 0-9/*")->total);
  CHECK(data::parse_content_range("bytes */1000")->unsatisfied);
  for (const char* bad : {"", "bytes", "bytes ", "bytes 1", "bytes 1/", "bytes 1-/9", "bytes -1/9",
                          "bytes 5-4/9", "bytes 0-9/9", "bytes 0-1/x", "bytes 0x1-2/9",
                          "lines 0-1/9", "bytes 0-99999999999999999999/*", "bytes 0-1/9 9"}) {
    CAPTURE(bad);
    CHECK_FALSE(data::parse_content_range(bad));
  }
}

TEST_CASE("The head of the last answer counts") {
  data::ResponseHead head;
  for (const char* line : {"HTTP/1.1 100 Continue\r\n", "ETag: \"early\"\r\n", "\r\n",
                           "HTTP/2 206\r\n", "etag: \"late\"\r\n", "Content-Type:text/html\r\n",
                           "LAST-MODIFIED:  Sun, 06 Nov 1994 08:49:37 GMT \r\n",
                           "Content-Range: bytes 1-2/3\r\n", "no colon\r\n", "\r\n"})
    head.add_line(line);
  CHECK(head.status == 206);
  CHECK(head.etag == "\"late\"");
  CHECK(head.content_type == "text/html");
  CHECK(head.last_modified == "Sun, 06 Nov 1994 08:49:37 GMT");
  REQUIRE(head.content_range);
  CHECK(head.content_range->total == 3);
}

TEST_CASE("Weak ETags are no ground to continue on") {
  data::ResponseHead head;
  head.add_line("ETag: W/\"weak\"");
  CHECK(head.strong_etag() == "");
  head.add_line("ETag: \"strong\"");
  CHECK(head.strong_etag() == "\"strong\"");
}

TEST_CASE("Statuses that may pass are tried again") {
  for (const int status : {408, 425, 429, 500, 502, 503, 504})
    CHECK(data::is_transient_status(status));
  for (const int status : {400, 401, 403, 404, 407, 410, 416})
    CHECK_FALSE(data::is_transient_status(status));
  CHECK(data::describe_status(404) == "404 Not Found");
  CHECK(data::describe_status(418) == "418");
}

TEST_CASE("Addresses are taken apart, and shown without a password") {
  CHECK(data::scheme_of("HTTPS://host/a") == "https");
  CHECK(data::scheme_of("file:///a") == "file");
  CHECK(data::scheme_of("/a/b") == "");
  CHECK(data::scheme_of("") == "");
  CHECK(data::without_credentials("https://me:secret@host:8443/a?b=c") ==
        "https://host:8443/a?b=c");
  CHECK(data::without_credentials("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz") ==
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz");
  CHECK(data::without_credentials("not an address") == "not an address");
  CHECK(data::without_credentials("http://me:secret@no host/") == "...@no host/");
}

TEST_CASE("Digests are those of FIPS 180-4's examples") {
  CHECK(sha256_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_of(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace towers::test
