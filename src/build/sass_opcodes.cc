// SPDX-License-Identifier: Apache-2.0
// Names of opcodes (the low 12 bits of an instruction) of sm_90, each seen beside its encoding in nvdisasm's listings of kernels
// compiled by CUDA 13.0.
#include <algorithm>
#include <iterator>
#include <utility>

#include "build/cubin.h"

namespace forge {

namespace {

constexpr std::pair<unsigned, const char*> kOpcodes[] = {
    {0x202, "mov"},         {0x207, "sel"},           {0x208, "fsel"},     {0x209, "fmnmx"},  {0x20b, "fsetp"},
    {0x20c, "isetp"},       {0x210, "iadd3"},         {0x211, "lea"},      {0x212, "lop3"},   {0x213, "iabs"},
    {0x219, "shf"},         {0x220, "fmul"},          {0x221, "fadd"},     {0x223, "ffma"},   {0x224, "imad"},
    {0x225, "imad"},        {0x227, "imad"},          {0x23e, "f2fp"},     {0x245, "i2fp"},   {0x248, "vimnmx"},
    {0x287, "usel"},        {0x28c, "uisetp"},        {0x290, "uiadd3"},   {0x291, "ulea"},   {0x2bd, "uflo"},
    {0x2ca, "r2ur"},        {0x300, "flo"},           {0x305, "f2i"},      {0x306, "i2f"},    {0x308, "mufu"},
    {0x310, "f2f"},         {0x312, "i2f"},           {0x31c, "b2r"},      {0x344, "call"},   {0x348, "warpsync"},
    {0x387, "stl"},         {0x388, "sts"},           {0x389, "shfl"},     {0x38c, "atoms"},  {0x3b4, "utmaldg"},
    {0x3b5, "utmastg"},     {0x3b6, "utmaredg"},      {0x3ba, "ublkcp"},   {0x3c4, "redux"},  {0x3c6, "fence"},
    {0x421, "fadd"},        {0x423, "ffma"},          {0x424, "imad"},     {0x435, "hfma2"},  {0x446, "viaddmnmx"},
    {0x4a4, "uimad"},       {0x51d, "bar"},           {0x589, "shfl"},     {0x5a7, "syncs"},  {0x5ab, "cgaerrbar"},
    {0x5b2, "syncs"},       {0x5b4, "utmaldg"},       {0x802, "mov"},      {0x803, "p2r"},    {0x805, "cs2r"},
    {0x806, "vote"},        {0x807, "sel"},           {0x808, "fsel"},     {0x809, "fmnmx"},  {0x80b, "fsetp"},
    {0x80c, "isetp"},       {0x810, "iadd3"},         {0x811, "lea"},      {0x812, "lop3"},   {0x816, "prmt"},
    {0x819, "shf"},         {0x81c, "plop3"},         {0x820, "fmul"},     {0x823, "ffma"},   {0x824, "imad"},
    {0x825, "imad"},        {0x827, "imad"},          {0x82f, "elect"},    {0x836, "viadd"},  {0x844, "stsm"},
    {0x846, "viaddmnmx"},   {0x848, "vimnmx"},        {0x882, "umov"},     {0x886, "voteu"},  {0x887, "usel"},
    {0x88c, "uisetp"},      {0x890, "uiadd3"},        {0x892, "ulop3"},    {0x896, "uprmt"},  {0x897, "uiadd3"},
    {0x899, "ushf"},        {0x8a4, "uimad"},         {0x8a5, "uimad"},    {0x918, "nop"},    {0x919, "s2r"},
    {0x91a, "depbar"},      {0x91b, "endcollective"}, {0x941, "bsync"},    {0x944, "call"},   {0x945, "bssy"},
    {0x946, "yield"},       {0x947, "bra"},           {0x948, "warpsync"}, {0x949, "brx"},    {0x94d, "exit"},
    {0x950, "ret"},         {0x981, "ldg"},           {0x983, "ldl"},      {0x984, "lds"},    {0x986, "stg"},
    {0x988, "sts"},         {0x989, "shfl"},          {0x98f, "cctl"},     {0x992, "membar"}, {0x9a7, "syncs"},
    {0x9ab, "errbar"},      {0x9b7, "utmacmdflush"},  {0x9b9, "utmacctl"}, {0x9c3, "s2ur"},   {0x9c5, "warpgroup"},
    {0x9c7, "ucgabar_arv"}, {0x9c8, "usetmaxreg"},    {0x9f0, "hgmma"},    {0x9f3, "qgmma"},  {0xab9, "uldc"},
    {0xb1d, "bar"},         {0xb82, "ldc"},           {0xc02, "mov"},      {0xc0c, "isetp"},  {0xc10, "iadd3"},
    {0xc11, "lea"},         {0xc12, "lop3"},          {0xc25, "imad"},     {0xc28, "dmul"},   {0xc36, "viadd"},
    {0xc82, "umov"},        {0xdc7, "ucgabar_wait"},  {0xe24, "imad"},     {0xf89, "shfl"},   {0xf8c, "atoms"},
    {0xfae, "ldgsts"}};

}  // namespace

const char* sass_opcode_name(unsigned opcode) {
  const auto at =
      std::lower_bound(std::begin(kOpcodes), std::end(kOpcodes), opcode, [](const auto& row, unsigned o) { return row.first < o; });
  return at != std::end(kOpcodes) && at->first == opcode ? at->second : nullptr;
}

}  // namespace forge
