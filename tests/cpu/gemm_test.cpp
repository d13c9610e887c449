// The matrix multiplication against three plain loops in double precision. Values are small
// integers, so that every sum is exact and the results must be equal.

#include "cpu/gemm.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/cpu/support.h"

namespace towers::cpu::test {
namespace {

constexpr float kUntouched = -12345;

struct Shape {
  std::ptrdiff_t groups, rows, columns, segments, segment_length;
  bool transposed;  // A has its rows side by side, not its k
  enum { packed, rows_of_b, columns_of_b } b;
  enum { zero, bias, accumulate, scaled } start;
  bool relu;
};

std::vector<float> integers(std::ptrdiff_t count, std::mt19937& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 9) - 4);
  return values;
}

float at(const std::vector<float>& values, std::ptrdiff_t i) {
  return values[static_cast<std::size_t>(i)];
}

// Runs one product and compares each element, and what lies between C's rows.
void check(const GemmKernels& kernels, const Shape& s, std::mt19937& random) {
  const std::ptrdiff_t k_values = s.segments * s.segment_length;
  Gemm g;
  g.groups = s.groups;
  g.rows = s.rows;
  g.columns = s.columns;
  g.segments = s.segments;
  g.segment_length = s.segment_length;
  if (s.transposed) {
    g.a_row = 1;
    g.a_k = s.rows + 2;
    g.a_segment = s.segment_length * g.a_k + 1;
  } else {
    g.a_row = s.segment_length + 3;
    g.a_segment = s.rows * g.a_row + 1;
  }
  g.a_group = 5;  // windows overlap
  const std::vector<float> a =
      integers((s.groups - 1) * g.a_group + (s.segments - 1) * g.a_segment +
                   (s.rows - 1) * g.a_row + (s.segment_length - 1) * g.a_k + 1,
               random);
  g.a = a.data();

  const std::vector<float> b = integers(k_values * s.columns, random);
  const bool by_rows = s.b != Shape::columns_of_b;
  const std::ptrdiff_t b_k = by_rows ? s.columns : 1, b_column = by_rows ? 1 : k_values;
  std::vector<float> packed(static_cast<std::size_t>(k_values * kernels.padded(s.columns)));
  g.b = b.data();
  if (s.b == Shape::packed) {
    kernels.pack_panels(
        {b.data(), b_k, b_column, k_values, s.columns, packed.data(), k_values * kernels.panel});
    g.b = packed.data();
  } else {
    g.b_k = b_k;
    g.b_column = b_column;
  }

  g.c_row = s.columns + 2;
  g.c_group = s.rows * g.c_row + 1;
  std::vector<float> c(static_cast<std::size_t>(s.groups * g.c_group), kUntouched);
  for (std::ptrdiff_t group = 0; group < s.groups; ++group)
    for (std::ptrdiff_t i = 0; i < s.rows; ++i)
      for (std::ptrdiff_t n = 0; n < s.columns; ++n)
        c[static_cast<std::size_t>(group * g.c_group + i * g.c_row + n)] =
            static_cast<float>(n % 7);
  g.c = c.data();
  const std::vector<float> before = c;
  // Nothing is read beyond: sanitizers would say so.
  const std::vector<float> other =
      integers(s.start == Shape::bias ? s.columns : s.rows * g.c_row, random);
  if (s.start != Shape::zero) {
    g.start = s.start == Shape::accumulate ? c.data() : other.data();
    if (s.start != Shape::bias) g.start_row = g.c_row;
    if (s.start == Shape::scaled) g.start_scale = 3;
  }
  g.relu = s.relu;
  kernels.gemm(g);

  std::vector<float> expected(c.size(), kUntouched);
  for (std::ptrdiff_t group = 0; group < s.groups; ++group) {
    for (std::ptrdiff_t i = 0; i < s.rows; ++i) {
      for (std::ptrdiff_t n = 0; n < s.columns; ++n) {
        const std::ptrdiff_t place = group * g.c_group + i * g.c_row + n;
        double sum = 0;
        if (s.start == Shape::bias) sum = static_cast<double>(at(other, n));
        if (s.start == Shape::accumulate) sum = static_cast<double>(at(before, place));
        if (s.start == Shape::scaled)
          sum = 3.0 * static_cast<double>(at(other, i * g.start_row + n));
        for (std::ptrdiff_t k = 0; k < k_values; ++k)
          sum += static_cast<double>(at(a, group * g.a_group + i * g.a_row +
                                               k / s.segment_length * g.a_segment +
                                               k % s.segment_length * g.a_k)) *
                 static_cast<double>(at(b, k * b_k + n * b_column));
        expected[static_cast<std::size_t>(place)] =
            static_cast<float>(s.relu ? std::max(sum, 0.0) : sum);
      }
    }
  }
  REQUIRE(c == expected);
}

TEST_CASE("matrix products of all shapes are exact") {
  for_each_target([](SimdTarget target) {
    const GemmKernels kernels = gemm_kernels(target);
    std::mt19937 random(1);
    const auto one_of = [&](std::initializer_list<std::ptrdiff_t> values) {
      return values.begin()[random() % values.size()];
    };
    for (std::ptrdiff_t rows = 1; rows <= 27; ++rows) {
      for (const std::ptrdiff_t columns : {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, 70}) {
        Shape s{};
        s.groups = one_of({1, 1, 2, 3});
        s.rows = rows;
        s.columns = columns;
        s.segments = one_of({1, 1, 2, 3, 5});
        s.segment_length = one_of({1, 2, 3, 15, 64});
        s.transposed = random() % 2 != 0;
        s.b = static_cast<decltype(s.b)>(random() % 3);
        s.start = static_cast<decltype(s.start)>(random() % 4);
        if (s.start == Shape::accumulate) s.groups = 1;  // all groups start from the same
        s.relu = random() % 2 != 0;
        CAPTURE(rows, columns, s.groups, s.segments, s.segment_length, s.transposed, s.b, s.start,
                s.relu);
        check(kernels, s, random);
      }
    }
  });
}

TEST_CASE("matrix products longer than a cache block are exact") {
  for_each_target([](SimdTarget target) {
    const GemmKernels kernels = gemm_kernels(target);
    std::mt19937 random(2);
    for (const std::ptrdiff_t length : {159, 160, 161, 320, 641, 2561, 2600})
      for (const std::ptrdiff_t segments : {1, 3})
        for (const auto b : {Shape::packed, Shape::rows_of_b, Shape::columns_of_b}) {
          CAPTURE(length, segments, b);
          check(kernels,
                {1, 13, kernels.panel + 1, segments, length, false, b, Shape::scaled, true},
                random);
        }
  });
}

TEST_CASE("no product, only the start") {
  for_each_target([](SimdTarget target) {
    const float bias[64] = {1, -2, 3};
    float c[3] = {9, 9, 9};
    Gemm g;
    g.b = bias;
    g.c = c;
    g.c_row = 3;
    g.rows = 1;
    g.columns = 3;
    g.start = bias;
    gemm_kernels(target).gemm(g);
    CHECK(std::vector<float>(c, c + 3) == std::vector<float>{1, -2, 3});
  });
}

TEST_CASE("the bytes of a product do not depend on how it is shared out") {
  for_each_target([](SimdTarget target) {
    const GemmKernels kernels = gemm_kernels(target);
    const std::ptrdiff_t rows = 37, columns = 3 * kernels.panel, k = 500;
    std::mt19937 random(3);
    std::uniform_real_distribution<float> value(-1, 1);
    std::vector<float> a(static_cast<std::size_t>(rows * k));
    std::vector<float> b(static_cast<std::size_t>(k * columns));
    for (float& x : a) x = value(random);
    for (float& x : b) x = value(random);
    Gemm g;
    g.a = a.data();
    g.a_row = k;
    g.segment_length = k;
    g.b = b.data();
    g.b_k = columns;
    g.c_row = columns;
    g.rows = rows;
    g.columns = columns;
    std::vector<float> whole(static_cast<std::size_t>(rows * columns));
    g.c = whole.data();
    kernels.gemm(g);

    std::vector<float> parts(whole.size());
    g.columns = kernels.panel;
    for (std::ptrdiff_t column = 0; column < columns; column += kernels.panel) {
      for (std::ptrdiff_t row = 0, size = 1; row < rows; row += g.rows, ++size) {
        g.a = a.data() + row * k;
        g.b = b.data() + column;
        g.c = parts.data() + row * columns + column;
        g.rows = std::min(size, rows - row);
        kernels.gemm(g);
      }
    }
    CHECK(whole == parts);
  });
}

TEST_CASE("a zero does not hide a value that is not finite, nor does relu hide NaN") {
  for_each_target([](SimdTarget target) {
    for (const float poison :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      const float a[2] = {0, 1}, b[2] = {poison, 2};
      float c = 0;
      Gemm g;
      g.a = a;
      g.segment_length = 2;
      g.b = b;
      g.b_k = 1;
      g.c = &c;
      g.rows = 1;
      g.columns = 1;
      g.relu = true;
      gemm_kernels(target).gemm(g);
      CHECK(std::isnan(c));
    }
  });
}

TEST_CASE("column sums of packed matrices") {
  for_each_target([](SimdTarget target) {
    const GemmKernels kernels = gemm_kernels(target);
    std::mt19937 random(4);
    for (const std::ptrdiff_t columns : {1, 5, 16, 33, 64})
      for (const bool accumulate : {false, true}) {
        const std::ptrdiff_t k = 19;
        const std::vector<float> b = integers(k * columns, random);
        std::vector<float> packed(static_cast<std::size_t>(k * kernels.padded(columns)));
        kernels.pack_panels({b.data(), columns, 1, k, columns, packed.data(), k * kernels.panel});
        std::vector<float> sums(static_cast<std::size_t>(columns) + 1, 2);
        std::vector<float> expected(sums);
        for (std::ptrdiff_t n = 0; n < columns; ++n) {
          float& sum = expected[static_cast<std::size_t>(n)];
          if (!accumulate) sum = 0;
          for (std::ptrdiff_t i = 0; i < k; ++i) sum += at(b, i * columns + n);
        }
        kernels.column_sums(packed.data(), k, columns, accumulate, sums.data());
        CHECK(sums == expected);
      }
  });
}

}  // namespace
}  // namespace towers::cpu::test
