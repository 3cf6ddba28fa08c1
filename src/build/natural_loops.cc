// SPDX-License-Identifier: Apache-2.0
// Innermost natural loops of a stretch of code: basic blocks, dominators (the iterative algorithm of Cooper, Harvey and Kennedy),
// back edges, bodies. The code may be foreign and made to be hard, so all work is counted and given up on beyond a bound.
#include <algorithm>

#include "build/loops.h"

namespace forge {

namespace {

using Block = std::uint32_t;
constexpr Block kNone = ~Block(0);
constexpr std::size_t kMaxSteps = 40'000'000;  // a second or less; honest kernels need thousands

struct Graph {
  std::vector<std::uint32_t> first;  // first line of each block, ascending; block 0 is no code but the root
  std::vector<std::vector<Block>> next, back;
  std::uint32_t lines = 0;
  std::uint32_t last_line(Block b) const { return (b + 1 < first.size() ? first[b + 1] : lines) - 1; }
};

class LoopFinder {
 public:
  explicit LoopFinder(const CodeRegion& region) : m_region(region) {}

  std::vector<CodeLoop> run() {
    if (m_region.lines.empty() || m_region.lines.size() > 4'000'000) return {};
    make_blocks();
    order_blocks();
    if (!find_dominators()) return {};
    return collect();
  }

 private:
  // Index of the line that starts at an offset, or the number of lines.
  std::size_t line_at(std::uint64_t offset) const {
    const auto& lines = m_region.lines;
    const auto at = std::lower_bound(lines.begin(), lines.end(), offset, [](const CodeLine& l, std::uint64_t o) { return l.offset < o; });
    return at != lines.end() && at->offset == offset ? static_cast<std::size_t>(at - lines.begin()) : lines.size();
  }

  void make_blocks() {
    const auto& lines = m_region.lines;
    std::vector<char> leader(lines.size(), 0);
    leader[0] = 1;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].flow == CodeLine::Flow::next) continue;
      if (i + 1 < lines.size()) leader[i + 1] = 1;
      const std::size_t to = lines[i].known_target ? line_at(lines[i].target) : lines.size();
      if (to < lines.size()) leader[to] = 1;
    }
    m_graph.lines = static_cast<std::uint32_t>(lines.size());
    m_graph.first.push_back(0);  // the root
    std::vector<Block> block_of(lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (leader[i]) m_graph.first.push_back(static_cast<std::uint32_t>(i));
      block_of[i] = static_cast<Block>(m_graph.first.size() - 1);
    }
    m_graph.next.resize(m_graph.first.size());
    m_graph.back.resize(m_graph.first.size());
    for (Block b = 1; b < m_graph.first.size(); ++b) {
      const std::uint32_t end = m_graph.last_line(b);
      const CodeLine& l = lines[end];
      const std::size_t to = l.flow != CodeLine::Flow::next && l.known_target ? line_at(l.target) : lines.size();
      if (to < lines.size()) connect(b, block_of[to]);
      const bool falls = l.flow == CodeLine::Flow::next || l.flow == CodeLine::Flow::conditional;
      if (falls && end + 1 < lines.size()) connect(b, block_of[end + 1]);
    }
  }

  void connect(Block from, Block to) {
    m_graph.next[from].push_back(to);
    m_graph.back[to].push_back(from);
  }

  // Depth first from the root; what it cannot reach (behind a jump by register) becomes an entry of its own. How such code
  // leads back into what was reached before it says nothing of loops there: it is mostly padding. Those edges are dropped.
  void order_blocks() {
    m_number.assign(m_graph.first.size(), kNone);
    std::vector<Block> post;
    std::vector<Block> seen(m_graph.first.size(), 0);  // by which entry
    std::vector<std::pair<Block, std::size_t>> stack;
    for (Block entry = 1; entry < m_graph.first.size(); ++entry) {
      if (seen[entry]) continue;
      connect(0, entry);
      seen[entry] = entry;
      stack.emplace_back(entry, 0);
      while (!stack.empty()) {
        auto& [b, child] = stack.back();
        if (child < m_graph.next[b].size()) {
          const Block to = m_graph.next[b][child++];
          if (!seen[to]) seen[to] = entry, stack.emplace_back(to, 0);
        } else {
          post.push_back(b);
          stack.pop_back();
        }
      }
    }
    for (Block b = 1; b < m_graph.first.size(); ++b) {
      std::erase_if(m_graph.next[b], [&](Block to) { return seen[b] > seen[to]; });
      std::erase_if(m_graph.back[b], [&](Block from) { return seen[from] > seen[b]; });
    }
    post.push_back(0);
    m_order.assign(post.rbegin(), post.rend());
    for (std::size_t i = 0; i < m_order.size(); ++i) m_number[m_order[i]] = static_cast<std::uint32_t>(i);
  }

  bool spend(std::size_t steps) { return (m_steps += steps) <= kMaxSteps; }

  bool find_dominators() {
    m_dominator.assign(m_graph.first.size(), kNone);
    m_dominator[0] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 1; i < m_order.size(); ++i) {
        const Block b = m_order[i];
        Block best = kNone;
        for (Block p : m_graph.back[b]) {
          if (!spend(1)) return false;
          if (m_dominator[p] == kNone) continue;
          best = best == kNone ? p : common(p, best);
        }
        if (best != m_dominator[b]) m_dominator[b] = best, changed = true;
      }
      if (m_steps > kMaxSteps) return false;
    }
    return true;
  }

  Block common(Block a, Block b) {
    while (a != b && spend(1)) {
      if (m_number[a] > m_number[b])
        a = m_dominator[a];
      else
        b = m_dominator[b];
    }
    return a;
  }

  bool dominates(Block a, Block b) {
    while (m_number[b] > m_number[a] && spend(1)) b = m_dominator[b];
    return a == b;
  }

  std::vector<CodeLoop> collect() {
    std::vector<std::vector<Block>> latches(m_graph.first.size());
    for (Block b = 1; b < m_graph.first.size(); ++b)
      for (Block head : m_graph.next[b])
        if (dominates(head, b)) latches[head].push_back(b);
    std::vector<CodeLoop> loops;
    std::vector<Block> mark(m_graph.first.size(), 0);  // the head whose search saw the block last
    for (Block head = 1; head < m_graph.first.size(); ++head) {
      if (latches[head].empty()) continue;
      std::vector<Block> body = {head}, todo;
      mark[head] = head;
      bool innermost = true;
      const auto visit = [&](Block b) {
        if (mark[b] == head) return;
        mark[b] = head;
        innermost &= latches[b].empty();
        body.push_back(b);
        todo.push_back(b);
      };
      for (Block latch : latches[head]) visit(latch);
      while (innermost && !todo.empty()) {
        const Block b = todo.back();
        todo.pop_back();
        if (!spend(1 + m_graph.back[b].size())) return loops;
        for (Block p : m_graph.back[b]) visit(p);
      }
      if (!innermost) continue;
      CodeLoop loop{.head = m_graph.first[head], .lines = {}};
      std::sort(body.begin(), body.end());
      for (Block b : body)
        for (std::uint32_t i = m_graph.first[b]; i <= m_graph.last_line(b); ++i) loop.lines.push_back(i);
      loop.heat = heat(m_region, loop.lines);
      loops.push_back(std::move(loop));
    }
    return loops;
  }

  const CodeRegion& m_region;
  Graph m_graph;
  std::vector<Block> m_order;           // reverse postorder
  std::vector<std::uint32_t> m_number;  // place in it
  std::vector<Block> m_dominator;       // immediate
  std::size_t m_steps = 0;
};

}  // namespace

std::vector<CodeLoop> innermost_loops(const CodeRegion& region) { return LoopFinder(region).run(); }

}  // namespace forge
