// SPDX-License-Identifier: Apache-2.0
// out = softmax(q k^T / sqrt(dim)) v in fp64, each query with the keys up to its own. A key behind the query is not read at all.
//
// scale is a first-order bound of what float32 may be off by, in units of u = 2^-24. With p the weights of a row of n keys, x = score -
// maximum <= 0, a_j = sum_d |q_d k_jd| / sqrt(dim):
//   - the score of key j is off by at most lambda sqrt(dim) a_j u (a sum of dim products; u of it for the factor 1 / sqrt(dim));
//   - subtracting the maximum and reducing the argument of exp: 2 |x_j| u, and 8 u for exp, the division and the last rounding;
//   - a relative change e_j of every exponential moves p_j by p_j (e_j - sum_l p_l e_l), so key j's own part counts 1 - p_j, the others
//   p_l;
//   - the sum of the exponentials and the sum over keys of p v: lambda sqrt(n) u each;
//   - stagnation in both: beside a key that takes nearly all, keys of like p_j below some 32 u are all rounded in one direction, by at most
//   min(p_j, u) each, so these add up as they are.
// The error of out is at most sum_j p_j |v_j| times the sum of these.
#include "forge/oracle.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "forge/fill.h"

namespace {

using forge::fill::Source;

constexpr double kUnit = 0x1p-24;
constexpr double kLambda = 4;  // exceeded with probability 2 exp(-lambda^2 / 2) by a bound that is itself hardly ever attained

// One query: keys transposed to [dim][seq] in fp64; n keys count.
struct Row {
  std::vector<double> x, a, p;

  void weigh(const float* q, const std::vector<double>& keys, int64_t seq, int64_t dim, int64_t n) {
    std::fill_n(x.begin(), n, 0.0);
    std::fill_n(a.begin(), n, 0.0);
    for (int64_t d = 0; d < dim; d++) {
      const double value = q[d] / std::sqrt(static_cast<double>(dim));
      const double* key = keys.data() + d * seq;
      for (int64_t j = 0; j < n; j++) {
        x[j] += value * key[j];
        a[j] += std::fabs(value * key[j]);
      }
    }
    const double top = *std::max_element(x.begin(), x.begin() + n);
    double sum = 0;
    for (int64_t j = 0; j < n; j++) sum += p[j] = std::exp(x[j] -= top);
    for (int64_t j = 0; j < n; j++) p[j] /= sum;
  }

  void attend(const float* v, int64_t dim, int64_t n, double* out, double* scale) const {
    const double root_dim = std::sqrt(static_cast<double>(dim)), root_n = std::sqrt(static_cast<double>(n));
    double mean = 0, lost = 0;
    for (int64_t j = 0; j < n; j++) {
      mean += p[j] * (kLambda * root_dim * a[j] - 2 * x[j]);
      if (p[j] < 32 * kUnit) lost += std::min(p[j] / kUnit, 1.0);
    }
    for (int64_t j = 0; j < n; j++) {
      const double own = kLambda * root_dim * a[j] - 2 * x[j];
      const double gone = p[j] < 32 * kUnit ? 1 / std::max(p[j], kUnit) : 0;
      const double bound = p[j] * (own * (1 - 2 * p[j]) + mean + 2 * kLambda * root_n + 8 + lost + gone);
      for (int64_t d = 0; d < dim; d++) {
        out[d] += p[j] * v[j * dim + d];
        if (scale) scale[d] += bound * std::fabs(v[j * dim + d]);
      }
    }
  }
};

int32_t expected(const forge_tensor* inputs, int32_t input_count, const forge_tensor* outputs, int32_t output_count, double* const* results,
                 double* const* scale, int64_t begin, int64_t end) {
  if (input_count != 3 || output_count != 1) return 1;
  const int64_t heads = outputs[0].shape[1], seq = outputs[0].shape[2], dim_v = outputs[0].shape[3], dim = inputs[0].shape[3];
  const auto count = static_cast<std::size_t>(seq);
  std::vector<double> keys(count * static_cast<std::size_t>(dim));
  Row row{std::vector<double>(count), std::vector<double>(count), std::vector<double>(count)};
  for (int64_t h = begin * heads; h < end * heads; h++) {
    const float* q = static_cast<const float*>(inputs[0].data) + h * seq * dim;
    const float* k = static_cast<const float*>(inputs[1].data) + h * seq * dim;
    const float* v = static_cast<const float*>(inputs[2].data) + h * seq * dim_v;
    for (int64_t j = 0; j < seq; j++)
      for (int64_t d = 0; d < dim; d++) keys[d * seq + j] = k[j * dim + d];
    for (int64_t i = 0; i < seq; i++) {
      const int64_t at = (h * seq + i) * dim_v;
      double* bound = scale && scale[0] ? scale[0] + at : nullptr;
      std::fill_n(results[0] + at, dim_v, 0.0);
      if (bound) std::fill_n(bound, dim_v, 0.0);
      row.weigh(q + i * dim, keys, seq, dim, i + 1);
      row.attend(v, dim_v, i + 1, results[0] + at, bound);
    }
  }
  return 0;
}

// 0: few keys stand far out, ever higher ones          1: all keys of a head are equal
// 2: scores ascend by 1/2 a key (odd heads: descend): the maximum moves at every step; what leaks from behind the query takes the row
// 3: scores near -300: a maximum started at 0 is wrong, exp underflows without the shift
// 4: scores near 1000 that differ by about 1           5: two keys share each row and their values cancel: the difference of scores shows
// 6: values grow along the sequence by 2^(1/8) a key: what leaks from behind dominates
// 7: pairs of equal keys with opposite values: odd rows cancel
constexpr int32_t kVariants = 8;

// The common part of key j of `seq`, in units that move its score by 8.
double level(int32_t variant, int64_t head, int64_t j, int64_t seq, Source& source) {
  switch (variant) {
    case 0:
      return source.below(24) == 0 ? 1 + static_cast<double>(j) / 16 : 0;
    case 2:
      return static_cast<double>(head % 2 ? seq - j : j) / 16;
    case 3:
      return -40;
    case 4:
      return 125;
    case 5:
      return j < 2 ? 3 : 0;
    default:
      return 0;
  }
}

int32_t adversarial(const forge_tensor* inputs, int32_t input_count, uint64_t seed, int32_t variant) {
  if (input_count != 3) return 0;
  if (variant < 0) return kVariants;  // only asked how many there are
  variant %= kVariants;
  Source source(seed);
  const int64_t heads = inputs[0].shape[0] * inputs[0].shape[1], seq = inputs[0].shape[2], dim = inputs[0].shape[3],
                dim_v = inputs[2].shape[3];
  std::vector<double> sign(static_cast<std::size_t>(dim));
  for (int64_t h = 0; h < heads; h++) {
    float* q = static_cast<float*>(inputs[0].data) + h * seq * dim;
    float* k = static_cast<float*>(inputs[1].data) + h * seq * dim;
    float* v = static_cast<float*>(inputs[2].data) + h * seq * dim_v;
    for (double& s : sign) s = source.below(2) ? 1 : -1;
    for (int64_t j = 0; j < seq; j++) {
      const double height = level(variant, h, j, seq, source);
      const bool copy = j > 0 && (variant == 1 || (variant == 7 && j % 2));
      for (int64_t d = 0; d < dim; d++) {
        q[j * dim + d] = static_cast<float>(sign[d] + source.normal() / 16);
        const double noise = source.normal() / 16;
        k[j * dim + d] = copy ? k[(j - 1) * dim + d] : static_cast<float>(sign[d] * height + noise);
      }
      for (int64_t d = 0; d < dim_v; d++) {
        double value = source.normal();
        if (variant == 6) value = std::ldexp(value, static_cast<int>(std::min<int64_t>(j / 8, 60)));
        if ((variant == 5 && j == 1) || (variant == 7 && j % 2)) value = -v[(j - 1) * dim_v + d];
        v[j * dim_v + d] = static_cast<float>(value);
      }
    }
  }
  return kVariants;
}

}  // namespace

extern "C" const forge_oracle_v1* forge_oracle(void) {
  static const forge_oracle_v1 oracle{FORGE_ORACLE_VERSION, "attention_fwd_f32", expected, adversarial};
  return &oracle;
}
