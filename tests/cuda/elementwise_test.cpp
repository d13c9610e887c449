// Biases, relu, sums over rows and filter layouts on the device: exact, or nearly.

#include <catch2/catch.hpp>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "cuda/kernels.h"
#include "tests/cuda/device.h"
#include "tests/reference/compare.h"

namespace towers::cuda::test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("biases are added to each row, then relu") {
  for (const int channels : {1, 3, 4, 10, 64, 300, 1028})
    for (const std::size_t rows : std::initializer_list<std::size_t>{1, 5, 70})
      for (const bool relu : {false, true})
        for (const std::size_t shift : std::initializer_list<std::size_t>{0, 1}) {
          CAPTURE(channels, rows, relu, shift);
          TestDevice device;
          const std::size_t width = static_cast<std::size_t>(channels);
          std::vector<float> want = values_of(rows * width, 1);
          want[0] = kNaN;
          const std::vector<float> biases = values_of(width, 2);
          float* values = device.put(want, shift);
          add_biases(device.stream(), rows, channels, device.put(biases, shift), relu, values);
          for (std::size_t i = 0; i < want.size(); ++i) {
            want[i] += biases[i % width];
            if (relu && want[i] <= 0) want[i] = 0;
          }
          CHECK(same_bits(device.get(values, want.size()), want));
        }
}

TEST_CASE("relu's gradient passes where its output is positive or NaN") {
  for (const std::size_t count :
       std::initializer_list<std::size_t>{1, 3, 4, 7, 1023, 1024, 1025, 3000})
    for (const std::size_t shift : std::initializer_list<std::size_t>{0, 1}) {
      CAPTURE(count, shift);
      TestDevice device;
      std::vector<float> output = values_of(count, 1), want = values_of(count, 2);
      for (std::size_t i = 0; i < count; i += 5) output[i] = 0;
      output[count / 2] = kNaN;
      float* d = device.put(want, shift);
      relu_backward(device.stream(), count, device.put(output, shift), d);
      for (std::size_t i = 0; i < count; ++i)
        if (output[i] <= 0) want[i] = 0;
      CHECK(same_bits(device.get(d, count), want));
    }
}

TEST_CASE("sums over rows, for few rows and many, narrow and wide") {
  for (const int channels : {1, 3, 4, 10, 64, 130, 260})
    for (const std::size_t rows : std::initializer_list<std::size_t>{1, 2, 100, 256, 257, 3000}) {
      CAPTURE(channels, rows);
      TestDevice device;
      const std::size_t width = static_cast<std::size_t>(channels);
      const std::vector<float> values = values_of(rows * width, 1);
      std::vector<double> want(width);
      for (std::size_t i = 0; i < values.size(); ++i)
        want[i % width] += static_cast<double>(values[i]);
      float* out = device.room<float>(width);
      const float* put = device.put(values);
      float* scratch = device.room<float>(column_sums_scratch(rows, channels));
      column_sums(device.stream(), rows, channels, put, out, scratch);
      const std::vector<float> got = device.get(out, width);
      CHECK(reference::relative_error(got, want) < 1e-6);
      column_sums(device.stream(), rows, channels, put, out, scratch);
      CHECK(same_bits(device.get(out, width), got));
    }
}

TEST_CASE("sums over rows beyond what one chunk takes, and a NaN among them") {
  TestDevice device;
  const std::size_t rows = 512 * 256 + 300;
  std::vector<float> values(rows * 4, 1.0f);
  float* out = device.room<float>(4);
  float* scratch = device.room<float>(column_sums_scratch(rows, 4));
  values[rows * 2 + 1] = kNaN;
  column_sums(device.stream(), rows, 4, device.put(values), out, scratch);
  const std::vector<float> got = device.get(out, 4);
  CHECK(got[0] == static_cast<float>(rows));
  CHECK(std::isnan(got[1]));
}

TEST_CASE("filters go from HWIO to KRSC and back") {
  for (const int kernel : {1, 3, 5})
    for (const int inputs : {1, 3, 64})
      for (const int outputs : {1, 10, 64, 65}) {
        CAPTURE(kernel, inputs, outputs);
        TestDevice device;
        const std::size_t taps = static_cast<std::size_t>(kernel * kernel);
        const std::size_t in = static_cast<std::size_t>(inputs);
        const std::size_t out = static_cast<std::size_t>(outputs);
        const std::vector<float> hwio = values_of(taps * in * out, 1);
        std::vector<float> want(hwio.size());
        for (std::size_t t = 0; t < taps; ++t)
          for (std::size_t i = 0; i < in; ++i)
            for (std::size_t o = 0; o < out; ++o)
              want[(o * taps + t) * in + i] = hwio[(t * in + i) * out + o];
        float* krsc = device.room<float>(hwio.size());
        float* back = device.room<float>(hwio.size());
        hwio_to_krsc(device.stream(), kernel, inputs, outputs, device.put(hwio), krsc);
        krsc_to_hwio(device.stream(), kernel, inputs, outputs, krsc, back);
        CHECK(device.get(krsc, hwio.size()) == want);
        CHECK(device.get(back, hwio.size()) == hwio);
      }
}

}  // namespace
}  // namespace towers::cuda::test
