#pragma once
// The matrices of Winograd's minimal filtering, from interpolation points (Toom-Cook).
//
// In one dimension, F(m, r) makes m outputs y of a filter g of r taps from n = m + r - 1 inputs x
// with n multiplications instead of m * r: y = output * ((kernel * g) . (input * x)). In two
// dimensions each matrix is applied to the columns, then to the rows: n * n multiplications per
// tile of m * m outputs. See Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks"
// (2015).
//
// The points are 0, pairs of opposite sign, and infinity, which comes last. A pair's two rows agree
// but for the sign of every other element, so one half of their work is shared.

#include <algorithm>

namespace towers::cpu {

template <int rows, int columns>
struct Matrix {
  static constexpr int kRows = rows, kColumns = columns;
  double at[rows][columns] = {};
};

template <int rows, int columns>
constexpr Matrix<columns, rows> transposed(const Matrix<rows, columns>& m) {
  Matrix<columns, rows> result;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) result.at[j][i] = m.at[i][j];
  return result;
}

// `m`, whose columns belong to points, as a matrix to be applied to sums and differences: where
// columns 2 i - 1 and 2 i belong to a pair, to the sum and the difference of the two elements.
template <int rows, int columns>
constexpr Matrix<rows, columns> folded(const Matrix<rows, columns>& m) {
  Matrix<rows, columns> result = m;
  for (int i = 0; i < rows; ++i)
    for (int j = 1; j + 1 < columns; j += 2) {
      result.at[i][j] = i % 2 == 0 ? m.at[i][j] : 0;
      result.at[i][j + 1] = i % 2 == 0 ? 0 : m.at[i][j];
    }
  return result;
}

// Operations of a row's sum over every `step`-th column: factors of 0 and 1 cost nothing.
template <int rows, int columns>
constexpr int sum_operations(const Matrix<rows, columns>& m, int row, int first, int step) {
  int operations = 0, terms = 0;
  for (int k = first; k < columns; k += step) {
    const double factor = m.at[row][k];
    if (factor == 0) continue;
    const bool multiplies = factor != 1 && (terms == 0 || factor != -1);
    operations += (terms > 0 ? 1 : 0) + (multiplies ? 1 : 0);
    ++terms;
  }
  return operations;
}

// Floating-point operations of m * tile * transposed m, a multiply-add being two. Of a matrix with
// more columns than rows, folded, as of one whose rows belong to points, pairs share their work.
template <int rows, int columns>
constexpr int transform_operations(const Matrix<rows, columns>& m) {
  constexpr int pairs = (std::max(rows, columns) - 2) / 2;
  int operations = 2 * pairs;
  if (rows >= columns) {
    operations += sum_operations(m, 0, 0, 1) + sum_operations(m, rows - 1, 0, 1);
    for (int row = 1; row + 1 < rows; row += 2)
      operations += sum_operations(m, row, 0, 2) + sum_operations(m, row, 1, 2);
  } else {
    for (int row = 0; row < rows; ++row) operations += sum_operations(m, row, 0, 1);
  }
  return operations * (rows + columns);
}

template <int m, int r>
struct Winograd {
  static constexpr int kOutputs = m, kKernel = r, kTile = m + r - 1;
  static constexpr double kPoints[7] = {0, 1, -1, 2, -2, 0.5, -0.5};
  static constexpr int kFinite = kTile - 1;  // points
  static_assert(kFinite % 2 == 1 && kFinite <= 7, "0 and whole pairs");

  static constexpr double power(double x, int exponent) {
    double result = 1;
    for (int i = 0; i < exponent; ++i) result *= x;
    return result;
  }

  // [n, n]. Row of a point: the polynomial that is zero at all other finite points, lowest power
  // first.
  static constexpr Matrix<kTile, kTile> input() {
    Matrix<kTile, kTile> result;
    for (int j = 0; j < kTile; ++j) {
      double* row = result.at[j];
      row[0] = 1;
      int degree = 0;
      for (int l = 0; l < kFinite; ++l) {
        if (l == j) continue;
        ++degree;
        for (int i = degree; i >= 0; --i) row[i] = (i > 0 ? row[i - 1] : 0) - kPoints[l] * row[i];
      }
    }
    return result;
  }

  // [n, r]. Row of a point: its powers, over that polynomial's value there.
  static constexpr Matrix<kTile, r> kernel() {
    Matrix<kTile, r> result;
    for (int j = 0; j < kFinite; ++j) {
      double value = 1;
      for (int l = 0; l < kFinite; ++l)
        if (l != j) value *= kPoints[j] - kPoints[l];
      for (int i = 0; i < r; ++i) result.at[j][i] = power(kPoints[j], i) / value;
    }
    result.at[kFinite][r - 1] = 1;
    return result;
  }

  // [m, n]. Column of a point: its powers.
  static constexpr Matrix<m, kTile> output() {
    Matrix<m, kTile> result;
    for (int j = 0; j < kFinite; ++j)
      for (int i = 0; i < m; ++i) result.at[i][j] = power(kPoints[j], i);
    result.at[m - 1][kFinite] = 1;
    return result;
  }
};

}  // namespace towers::cpu
