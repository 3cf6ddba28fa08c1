// SPDX-License-Identifier: Apache-2.0
// Private to .cc files: a run as its journal tells it, taken event by event, so that a page can follow a run that goes. The report
// and the live page show the same story through the same sections.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/loose_json.h"
#include "report/page.h"
#include "store/journal.h"

namespace forge {

double number_of(const Json&);                                           // of anything: 0 where it is none
const Json& pairing_with(const Json& verdict, const std::string& whom);  // a verdict's timing against "reference" or "expert"

struct Point {  // a hand-in
  int n = 0;
  std::string label, milestone, reason, detail, sha;
  int revision = 0;
  double seconds = 0, speedup = 0, low = 0, high = 0;
  bool record = false;  // the best so far when it came
};

struct EntryUse {
  bool retrieved = false, cited = false, implemented = false, adopted = false;
  std::string state;  // on this device class, with the certified effect
};

// Of a long run the story keeps what a page can show: it is bounded, whatever the journal's length.
struct Story {
  static constexpr std::size_t kMostPoints = 2000;      // then the older ones are thinned evenly; records and the newest stay
  static constexpr std::size_t kMostMechanisms = 1000;  // the newest
  static constexpr std::size_t kMostPlans = 200;        // the first and the newest; branches likewise

  Json start, open, floor, analysis, confirm, direct, end;
  std::vector<Json> plans, branches;
  std::vector<Point> points;                             // of hand_ins in all
  std::vector<std::pair<std::string, Json>> mechanisms;  // milestone, result
  std::map<std::string, int> reasons;
  std::map<std::string, double> gate_seconds;  // build, admit, correctness, timing
  std::vector<double> verdict_seconds;
  std::vector<std::pair<std::string, EntryUse>> entries;  // in the order in which they came up
  // Where the run is now.
  int events = 0, hand_ins = 0, revision = 0;
  std::size_t plans_left_out = 0, branches_left_out = 0, mechanisms_left_out = 0;
  std::string milestone, milestone_title, first_type, last_type, last_time;

  void add(const Event&);
  std::string operator_name() const { return text_of(field_of(field_of(start, "task"), "operator")); }
  std::string title() const { return "ForgeKernel: " + operator_name() + " " + text_of(field_of(start, "run")); }
  const Point* best() const;  // the fastest accepted hand-in; null: none yet

 private:
  EntryUse& entry(const std::string& id);
  void add_point(Point);
  double m_best_speedup = 0, m_best_seconds = 0;  // of best(); no seconds: none yet
  int m_stride = 1;                               // of the older points, every so manieth is kept
};

enum class RunState { running, finished, interrupted };
const char* name(RunState);
RunState state_of(const Story&, bool written_to);

Json chart_data(const Story&);                                                       // what chart_html takes
Json facts_json(const Story&, RunState);                                             // the live page's figures, for programs
std::string reasons_html(const std::vector<std::pair<std::string, std::int64_t>>&);  // what the gate said, how often
std::string now_html(const Story&, RunState);                                        // the same, to look at
// The sections of a page about a run; a report counts its hand-ins from the first, a live page from the newest.
std::vector<Section> story_sections(const Story&, const std::string& chart, bool newest_first);

}  // namespace forge
