// SPDX-License-Identifier: Apache-2.0
// Number formats: conversion with round-to-nearest-even, each value rounded once. Sub-byte and 8-bit floats are not here yet.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/operator.h"

namespace forge {

bool judge_supports(DType);   // f32 f16 bf16 and the integers
bool is_float(DType);         // f32 f16 bf16
std::size_t bytes_of(DType);  // of one element; only where judge_supports

// One value. Integers saturate; floats overflow to infinity as the hardware does.
void encode(DType, double value, void* to);
double decode(DType, const void* from);

// Bulk. encode_floats is for float dtypes only; decode_floats takes every supported dtype.
void encode_floats(DType, const float* from, void* to, std::int64_t count);
void decode_floats(DType, const void* from, float* to, std::int64_t count);

// Rounds to `mantissa_bits` explicit bits (23 leaves a float as it is), nearest even.
float round_mantissa(float, int mantissa_bits);

}  // namespace forge
