// What 16 bits change in the kernels: a value is rounded when it is stored, and nothing else. So
// with inputs that 16 bits hold each kernel gives what it gives in float, rounded to the last bit;
// tests of float compare that with the reference.

#include <catch2/catch.hpp>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "cuda/kernels.h"
#include "tests/cuda/device.h"
#include "tests/reference/compare.h"
#include "tests/reference/layers.h"

namespace towers::cuda::test {
namespace {

template <class T>
std::vector<T> narrowed(const std::vector<float>& values) {
  std::vector<T> stored;
  for (const float value : values) stored.push_back(narrow<T>(value));
  return stored;
}
template <class T>
std::vector<float> widened(const std::vector<T>& stored) {
  std::vector<float> values;
  for (const T value : stored) values.push_back(widen(value));
  return values;
}

// What a kernel wrote: tensors as floats, and what is wide in any case.
struct Written {
  std::vector<std::vector<float>> tensors, wide;
  std::vector<std::uint8_t> winners;
};

// A device whose tensors are stored as Stored, of values that Narrow holds.
template <class Stored, class Narrow>
struct Run {
  Stored* tensor(const std::vector<float>& values) {
    return device.put(narrowed<Stored>(widened(narrowed<Narrow>(values))));
  }
  Stored* room(std::size_t count) { return device.room<Stored>(count); }
  void keep(const Stored* tensor, std::size_t count) {
    written.tensors.push_back(widened(device.get(tensor, count)));
  }
  void keep_wide(const float* values, std::size_t count) {
    written.wide.push_back(device.get(values, count));
  }
  Stream& stream() { return device.stream(); }

  TestDevice device;
  Written written;
};

template <class Stored, class Narrow, class F>
Written written_by(const F& f) {
  Run<Stored, Narrow> run;  // one at a time: it starts the devices anew
  f(run);
  return run.written;
}

// f(run) launches kernels and keeps what they wrote.
template <class T, class F>
void check_in(const F& f) {
  const Written want = written_by<float, T>(f), got = written_by<T, T>(f);
  REQUIRE(got.tensors.size() == want.tensors.size());
  for (std::size_t i = 0; i < got.tensors.size(); ++i)
    CHECK(same_bits(got.tensors[i], widened(narrowed<T>(want.tensors[i]))));
  REQUIRE(got.wide.size() == want.wide.size());
  for (std::size_t i = 0; i < got.wide.size(); ++i) CHECK(same_bits(got.wide[i], want.wide[i]));
  CHECK(got.winners == want.winners);
}
template <class F>
void check(const F& f) {
  {
    INFO("float16");
    check_in<__half>(f);
  }
  INFO("bfloat16");
  check_in<__nv_bfloat16>(f);
}

WindowShape window(Extent in, Extent out, int batch, int size, int stride) {
  return {batch,
          in,
          out,
          size,
          stride,
          same_padding_before(in.height, size, stride),
          same_padding_before(in.width, size, stride)};
}

TEST_CASE("numbers of 16 bits come back from float, and others go to the nearest") {
  int finite = 0;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const std::uint16_t word = static_cast<std::uint16_t>(bits);
    const float half = widen(__half{word}), brain = widen(__nv_bfloat16{word});
    finite += std::isfinite(half);
    REQUIRE((std::isnan(half) || narrow<__half>(half).bits == word));
    REQUIRE((std::isnan(brain) || narrow<__nv_bfloat16>(brain).bits == word));
  }
  CHECK(finite == 2 * 31 * 1024);
  const auto half = [](float value) { return widen(narrow<__half>(value)); };
  CHECK(half(1 + 0x1p-11f) == 1);  // halfway: to the even one
  CHECK(half(1 + 3 * 0x1p-11f) == 1 + 0x1p-9f);
  CHECK(half(1 + 0x1.01p-11f) == 1 + 0x1p-10f);
  CHECK(half(65519.996f) == 65504);
  CHECK(half(-65520) == -std::numeric_limits<float>::infinity());
  CHECK(half(0x1p-24f) == 0x1p-24f);
  CHECK(half(0x1p-25f) == 0);
  CHECK(half(0x1.8p-25f) == 0x1p-24f);
  CHECK(half(0x1.ffep-15f) == 0x1p-14f);  // a mantissa that overflows
  CHECK(std::isnan(half(std::nanf(""))));
  const auto brain = [](float value) { return widen(narrow<__nv_bfloat16>(value)); };
  CHECK(brain(1 + 0x1p-8f) == 1);
  CHECK(brain(1 + 3 * 0x1p-8f) == 1 + 0x1p-6f);
  CHECK(brain(3.4e38f) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(brain(std::nanf(""))));
}

TEST_CASE("biases, relu, sums and filters in 16 bits") {
  for (const int channels : {1, 4, 10, 64}) {
    CAPTURE(channels);
    const std::size_t rows = 300, width = static_cast<std::size_t>(channels), count = rows * width;
    check([&](auto& run) {
      auto* values = run.tensor(values_of(count, 1));
      add_biases(run.stream(), rows, channels, run.tensor(values_of(width, 2)), true, values);
      run.keep(values, count);
      auto* d = run.tensor(values_of(count, 3));
      relu_backward(run.stream(), count, run.tensor(values_of(count, 1)), d);
      run.keep(d, count);
      relu_backward(run.stream(), count, run.device.put(values_of(count, 5)), d);
      run.keep(d, count);
      float* sums = run.device.template room<float>(width);
      column_sums(run.stream(), rows, channels, run.tensor(values_of(count, 4)), sums,
                  run.device.template room<float>(column_sums_scratch(rows, channels)));
      run.keep_wide(sums, width);
      const std::size_t filter = 9 * 5 * width;
      auto* krsc = run.room(filter);
      float* hwio = run.device.template room<float>(filter);
      hwio_to_krsc(run.stream(), 3, 5, channels, run.tensor(values_of(filter, 6)), krsc);
      krsc_to_hwio(run.stream(), 3, 5, channels, krsc, hwio);
      run.keep(krsc, filter);
      run.keep_wide(hwio, filter);
    });
  }
}

TEST_CASE("values are converted from float and to it") {
  for (const std::size_t count : std::initializer_list<std::size_t>{1, 4, 7, 2050}) {
    CAPTURE(count);
    TestDevice device;
    const std::vector<float> values = values_of(count, 1, 100);
    const float* from = device.put(values);
    const auto there_and_back = [&](auto type) {
      using T = typename decltype(type)::type;
      T* stored = device.room<T>(count);
      float* back = device.room<float>(count);
      convert(device.stream(), count, from, stored);
      convert(device.stream(), count, stored, back);
      return device.get(back, count);
    };
    CHECK(there_and_back(std::type_identity<__half>()) == widened(narrowed<__half>(values)));
    CHECK(there_and_back(std::type_identity<__nv_bfloat16>()) ==
          widened(narrowed<__nv_bfloat16>(values)));
    CHECK(there_and_back(std::type_identity<double>()) == values);
  }
}

TEST_CASE("direct convolutions in 16 bits") {
  for (const int channels : {3, 8})
    for (const int outputs : {5, 12}) {
      CAPTURE(channels, outputs);
      const Extent in{6, 7, channels}, out{6, 7, outputs};
      const WindowShape shape = window(in, out, 2, 3, 1);
      const std::size_t filter = 9 * static_cast<std::size_t>(channels * outputs);
      check([&](auto& run) {
        const auto* x = run.tensor(values_of(2 * in.size(), 1));
        const auto* w = run.tensor(values_of(filter, 2));
        const auto* b = run.tensor(values_of(static_cast<std::size_t>(outputs), 3));
        const auto* dy = run.tensor(values_of(2 * out.size(), 4));
        auto* y = run.room(2 * out.size());
        auto* dx = run.room(2 * in.size());
        float* dw = run.device.template room<float>(filter);
        direct_convolution(run.stream(), shape, x, w, b, true, y);
        direct_convolution_input_gradient(run.stream(), shape, dy, w, dx);
        direct_convolution_weight_gradient(run.stream(), shape, x, dy, dw);
        run.keep(y, 2 * out.size());
        run.keep(dx, 2 * in.size());
        run.keep_wide(dw, filter);
      });
    }
}

TEST_CASE("pools and norms in 16 bits, one by one") {
  for (const int channels : {8, 7}) {
    CAPTURE(channels);
    const Extent in{7, 6, channels}, out = output_extent(Layer{"", MaxPool{3, 2}}, in);
    const WindowShape shape = window(in, out, 2, 3, 2);
    const LocalResponseNorm norm{4, 1, 0.3, 0.75};
    const std::size_t inputs = 2 * in.size(), outputs = 2 * out.size();
    check([&](auto& run) {
      const auto* x = run.tensor(values_of(inputs, 1, 2));
      auto* y = run.room(outputs);
      auto* dx = run.room(inputs);
      std::uint8_t* winners = run.device.template room<std::uint8_t>(outputs);
      max_pool(run.stream(), shape, x, y, winners, true);
      max_pool_backward(run.stream(), shape, run.tensor(values_of(outputs, 2)), winners, dx);
      run.written.winners = run.device.get(winners, outputs);
      run.keep(y, outputs);
      run.keep(dx, inputs);
      auto* normalized = run.room(inputs);
      auto* d_normalized = run.room(inputs);
      const std::size_t pixels = inputs / static_cast<std::size_t>(channels);
      local_response_norm(run.stream(), norm, pixels, channels, x, normalized);
      local_response_norm_backward(run.stream(), norm, pixels, channels, x,
                                   run.tensor(values_of(inputs, 3)), true, d_normalized);
      run.keep(normalized, inputs);
      run.keep(d_normalized, inputs);
    });
  }
}

TEST_CASE("a pool and a norm in one pass in 16 bits") {
  const Extent in{9, 10, 64}, out = output_extent(Layer{"", MaxPool{3, 2}}, in);
  const WindowShape shape = window(in, out, 2, 3, 2);
  const LocalResponseNorm norm{4, 1, 0.3, 0.75};
  REQUIRE(pool_and_norm_fit(shape, norm));
  const std::size_t inputs = 2 * in.size(), outputs = 2 * out.size();
  check([&](auto& run) {
    const auto* x = run.tensor(values_of(inputs, 1, 2));
    const auto* dy = run.tensor(values_of(outputs, 2));
    auto* pooled = run.room(outputs);
    auto* y = run.room(outputs);
    auto* dx = run.room(inputs);
    std::uint8_t* winners = run.device.template room<std::uint8_t>(outputs);
    pool_then_norm(run.stream(), shape, norm, x, true, pooled, winners, y);
    pool_then_norm_backward(run.stream(), shape, norm, pooled, dy, winners, dx);
    run.written.winners = run.device.get(winners, outputs);
    run.keep(pooled, outputs);
    run.keep(y, outputs);
    run.keep(dx, inputs);
    norm_then_pool(run.stream(), norm, shape, x, y, winners);
    norm_then_pool_backward(run.stream(), norm, shape, x, dy, winners, false, dx);
    run.keep(y, outputs);
    run.keep(dx, inputs);
  });
}

TEST_CASE("the input in 16 bits") {
  const std::size_t size = 5, values = size * 3 * kCropPixels;
  std::vector<std::uint8_t> records;
  for (const float value : values_of(size * kRecordBytes, 1, 256))
    records.push_back(static_cast<std::uint8_t>(std::lround(value) & 255));
  check([&](auto& run) {
    auto* images = run.room(values);
    training_batch(run.stream(),
                   {.records = run.device.put(records), .size = size, .orders = nullptr, .seed = 3},
                   7, size, images, run.device.template room<std::int32_t>(size));
    run.keep(images, values);
  });
}

TEST_CASE("the loss's gradient in 16 bits, and the loss itself in float") {
  check([](auto& run) {
    const std::size_t batch = 40, count = batch * 10;
    std::vector<std::int32_t> labels(batch, 3);
    auto* d_logits = run.room(count);
    float* losses = run.device.template room<float>(batch + 1);
    softmax_loss(run.stream(), static_cast<int>(batch), 10, run.device.put(values_of(count, 1, 4)),
                 run.device.put(labels), nullptr, d_logits, losses, losses + batch);
    run.keep(d_logits, count);
    run.keep_wide(losses, batch + 1);
  });
}

TEST_CASE("kernels in float64 have its digits") {
  TestDevice device;
  const auto doubles = [&](std::size_t count, std::uint32_t stream) {
    std::vector<double> values = reference::doubles(values_of(count, stream));
    for (std::size_t i = 0; i < count; ++i) values[i] += 1e-10 * static_cast<double>(i % 7);
    return values;
  };
  const Convolution op{3, 1, 8, false};
  const Extent in{5, 6, 8};
  const WindowShape shape = window(in, in, 1, 3, 1);
  const std::vector<double> x = doubles(in.size(), 1), w = doubles(9 * 8 * 8, 2), b = doubles(8, 3),
                            dy = doubles(in.size(), 4);
  std::vector<double> y(x.size()), dx(x.size()), dw(w.size()), db(b.size());
  reference::convolution_forward(op, in, x.data(), w.data(), b.data(), y.data());
  reference::convolution_backward(op, in, x.data(), w.data(), dy.data(), dx.data(), dw.data(),
                                  db.data());
  const double* put_x = device.put(x);
  const double* put_w = device.put(w);
  const double* put_dy = device.put(dy);
  double* out = device.room<double>(x.size());
  constexpr double kDigits = 1e-14;
  direct_convolution(device.stream(), shape, put_x, put_w, device.put(b), false, out);
  CHECK(reference::relative_error(device.get(out, x.size()), y) < kDigits);
  direct_convolution_input_gradient(device.stream(), shape, put_dy, put_w, out);
  CHECK(reference::relative_error(device.get(out, x.size()), dx) < kDigits);
  double* weights = device.room<double>(w.size());
  direct_convolution_weight_gradient(device.stream(), shape, put_x, put_dy, weights);
  CHECK(reference::relative_error(device.get(weights, w.size()), dw) < kDigits);
  double* sums = device.room<double>(8);
  column_sums(device.stream(), 30, 8, put_dy, sums, device.room<double>(8));
  CHECK(reference::relative_error(device.get(sums, 8), db) < kDigits);

  const LocalResponseNorm norm{4, 1.5, 0.2, 0.75};
  reference::local_response_norm_forward(norm, in, x.data(), y.data());
  reference::local_response_norm_backward(norm, in, x.data(), dy.data(), dx.data());
  local_response_norm(device.stream(), norm, 30, 8, put_x, out);
  CHECK(reference::relative_error(device.get(out, x.size()), y) < kDigits);
  local_response_norm_backward(device.stream(), norm, 30, 8, put_x, put_dy, false, out);
  CHECK(reference::relative_error(device.get(out, x.size()), dx) < kDigits);
}

}  // namespace
}  // namespace towers::cuda::test
