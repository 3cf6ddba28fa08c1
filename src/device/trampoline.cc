// SPDX-License-Identifier: Apache-2.0
#include "device/trampoline.h"

// Intel syntax would need a switch for the whole file; AT&T it is. rbp carries the old stack across the kernel's call.
asm(R"(
.text
.p2align 4
.globl forge_run_block
.type forge_run_block, @function
forge_run_block:
  push %rbp
  mov %rsp, %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  sub $8, %rsp
  stmxcsr (%rsp)
  movl $0x1f80, 4(%rsp)
  ldmxcsr 4(%rsp)
  cld
  fninit
  vzeroupper
  mov %rdi, %rax
  mov %rsi, %rdi
  mov %rdx, %rsi
  mov %rcx, %rsp
  call *%rax
  cld
  vzeroupper
  lea -48(%rbp), %rsp
  ldmxcsr (%rsp)
  fninit
  add $8, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size forge_run_block, . - forge_run_block

.p2align 4
.globl forge_scrub_avx
.type forge_scrub_avx, @function
forge_scrub_avx:
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
  vmovdqu (%rdi), %ymm\n
  .endr
  vzeroupper
  ret
.size forge_scrub_avx, . - forge_scrub_avx

.p2align 4
.globl forge_scrub_avx512
.type forge_scrub_avx512, @function
forge_scrub_avx512:
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
  vmovdqu64 (%rdi), %zmm\n
  .endr
  .irp n, 0,1,2,3,4,5,6,7
  kmovq (%rdi), %k\n
  .endr
  vzeroupper
  ret
.size forge_scrub_avx512, . - forge_scrub_avx512

.p2align 4
.globl forge_zero_gs_base
.type forge_zero_gs_base, @function
forge_zero_gs_base:
  xor %eax, %eax
  wrgsbase %rax
  ret
.size forge_zero_gs_base, . - forge_zero_gs_base
)");
