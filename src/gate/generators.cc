// SPDX-License-Identifier: Apache-2.0
#include "gate/generators.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gate/numeric.h"
#include "util/random.h"

namespace forge {
namespace {

constexpr std::int64_t k_chunk = 1 << 15;  // elements from one random stream
constexpr std::int64_t k_block = 1024;     // drawn as floats, then converted together

// Marsaglia and Tsang's ziggurat with 256 layers: one draw costs a table look-up and a multiplication in 99 % of cases.
class Ziggurat {
 public:
  Ziggurat() {
    constexpr double volume = 4.92867323399e-3;
    const auto density = [](double x) { return std::exp(-0.5 * x * x); };
    m_x[0] = volume / density(k_tail);
    m_x[1] = k_tail;
    for (int i = 2; i < k_layers; ++i) m_x[i] = std::sqrt(-2 * std::log(volume / m_x[i - 1] + density(m_x[i - 1])));
    m_x[k_layers] = 0;
    for (int i = 0; i <= k_layers; ++i) m_f[i] = density(m_x[i]);
  }
  double draw(Random& random) const {
    while (true) {
      const std::uint64_t bits = random.next();
      const int layer = static_cast<int>(bits & 255);
      const double signed_unit = static_cast<double>(static_cast<std::int64_t>(bits) >> 11) * 0x1p-52;  // [-1, 1)
      const double x = signed_unit * m_x[layer];
      if (std::fabs(x) < m_x[layer + 1]) return x;
      if (layer == 0) return tail(random, signed_unit < 0);
      if (m_f[layer] + random.uniform() * (m_f[layer + 1] - m_f[layer]) < std::exp(-0.5 * x * x)) return x;
    }
  }

 private:
  static double tail(Random& random, bool negative) {
    while (true) {
      const double x = -std::log(1 - random.uniform()) / k_tail, y = -std::log(1 - random.uniform());
      if (y + y > x * x) return negative ? -(k_tail + x) : k_tail + x;
    }
  }
  static constexpr int k_layers = 256;
  static constexpr double k_tail = 3.6541528853610088;
  double m_x[k_layers + 1], m_f[k_layers + 1];
};

const Ziggurat& ziggurat() {
  static const Ziggurat table;
  return table;
}

double draw(const GeneratorRule& rule, Random& random, const Ziggurat& normal) {
  switch (rule.kind) {
    case GeneratorKind::heavy_tailed: {
      // Chi-squared with 2 degrees of freedom over 2 is exponential.
      const double t = normal.draw(random) / std::sqrt(-std::log(1 - random.uniform()) + 1e-30);
      return std::clamp(t, -1e4, 1e4) * rule.scale;
    }
    case GeneratorKind::large_magnitude: {
      const double power = static_cast<double>(std::uint64_t(1) << random.below(14));
      return normal.draw(random) * power * rule.scale;
    }
    case GeneratorKind::small_integers: {
      const auto largest = static_cast<std::int64_t>(std::max(1.0, std::floor(std::fabs(rule.scale))));
      return static_cast<double>(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * largest + 1))) - largest);
    }
    case GeneratorKind::normal:
    case GeneratorKind::adversarial:
      break;
  }
  return normal.draw(random) * rule.scale;
}

double largest_finite(DType type) {
  switch (type) {
    case DType::f32:
      return std::numeric_limits<float>::max();
    case DType::bf16:
      return 0x1.fep127;
    case DType::f16:
      return 65504;
    default:
      return std::numeric_limits<double>::infinity();  // integers saturate in encode()
  }
}

double offset_of(const GeneratorRule& rule, const std::string& tensor) {
  const auto found = rule.offset.find(tensor);
  return found == rule.offset.end() ? 0 : found->second;
}

void fill_chunk(const GeneratorRule& rule, DType type, double offset, Random& random, std::byte* to, std::int64_t count) {
  const Ziggurat& normal = ziggurat();
  const double limit = largest_finite(type);
  if (!is_float(type)) {
    for (std::int64_t i = 0; i < count; ++i)
      encode(type, draw(rule, random, normal) + offset, to + static_cast<std::size_t>(i) * bytes_of(type));
    return;
  }
  float block[k_block];
  for (std::int64_t done = 0; done < count; done += k_block) {
    const std::int64_t n = std::min(k_block, count - done);
    for (std::int64_t i = 0; i < n; ++i) block[i] = static_cast<float>(std::clamp(draw(rule, random, normal) + offset, -limit, limit));
    encode_floats(type, block, to + static_cast<std::size_t>(done) * bytes_of(type), n);
  }
}

}  // namespace

void fill_tensor(const GeneratorRule& rule, const std::string& tensor, DType type, std::uint64_t seed, void* data, std::int64_t count,
                 ThreadTeam& team) {
  const double offset = offset_of(rule, tensor);
  const std::int64_t chunks = (count + k_chunk - 1) / k_chunk;
  std::vector<std::uint64_t> seeds(static_cast<std::size_t>(chunks));
  Random master(seed);
  for (auto& s : seeds) s = master.next();
  team.run(chunks, [&](std::int64_t chunk, int) {
    Random random(seeds[static_cast<std::size_t>(chunk)]);
    const std::int64_t begin = chunk * k_chunk;
    fill_chunk(rule, type, offset, random, static_cast<std::byte*>(data) + static_cast<std::size_t>(begin) * bytes_of(type),
               std::min(k_chunk, count - begin));
  });
}

double draw_scalar(const GeneratorRule& rule, const std::string& tensor, std::uint64_t seed) {
  Random random(seed);
  // A scalar is a parameter (an epsilon, a factor): when the rule gives its value, that is the value.
  if (rule.offset.count(tensor)) return offset_of(rule, tensor);
  return draw(rule, random, ziggurat());
}

}  // namespace forge
