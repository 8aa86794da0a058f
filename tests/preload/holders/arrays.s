	.file	"arrays.f90"
	.text
.Ltext0:
	.file 0 "." "arrays.f90"
	.globl	run
	.type	run, @function
run:
.LFB0:
	.file 1 "arrays.f90"
	.loc 1 3 27 view -0
	.cfi_startproc
	pushq	%r12
	.cfi_def_cfa_offset 16
	.cfi_offset 12, -16
	pushq	%rbp
	.cfi_def_cfa_offset 24
	.cfi_offset 6, -24
	pushq	%rbx
	.cfi_def_cfa_offset 32
	.cfi_offset 3, -32
.LVL0:
.LBB2:
	.loc 1 14 37 view .LVU1
	movl	$1200000, %edi
	call	malloc@PLT
.LVL1:
	movq	%rax, %rbp
.LVL2:
	.loc 1 14 37 is_stmt 0 view .LVU2
	leaq	1200000(%rax), %rdx
.LBB3:
	.loc 1 15 11 is_stmt 1 view .LVU3
	movss	.LC0(%rip), %xmm0
.LVL3:
.L2:
	.loc 1 15 11 is_stmt 0 discriminator 2 view .LVU4
	movss	%xmm0, (%rax)
	addq	$4, %rax
	cmpq	%rdx, %rax
	jne	.L2
	.loc 1 15 11 discriminator 2 view .LVU5
.LBE3:
	.loc 1 16 38 is_stmt 1 view .LVU6
	movl	$1680000, %edi
	call	malloc@PLT
.LVL4:
	movq	%rax, %r12
.LVL5:
	.loc 1 16 38 is_stmt 0 view .LVU7
	testq	%rax, %rax
	setne	%bl
	movzbl	%bl, %ebx
	salq	$3, %rbx
.LVL6:
	.loc 1 16 38 view .LVU8
	imulq	$300, %rbx, %rdi
	movq	%rax, %rsi
	movq	$-1, %rcx
.LBB4:
.LBB5:
	.loc 1 17 10 is_stmt 1 view .LVU9
	movsd	.LC1(%rip), %xmm0
.LVL7:
.L4:
	.loc 1 17 10 is_stmt 0 view .LVU10
.LBE5:
.LBE4:
	.loc 1 16 38 is_stmt 1 discriminator 2 view .LVU11
	movq	%rsi, %rdx
	movl	$300, %eax
.L3:
.LBB7:
.LBB6:
	.loc 1 17 10 discriminator 5 view .LVU12
	movsd	%xmm0, (%rdx)
	addq	%rbx, %rdx
	subq	$1, %rax
	jne	.L3
.LBE6:
	.loc 1 17 10 is_stmt 0 discriminator 4 view .LVU13
	addq	%rdi, %rsi
	addq	$300, %rcx
	cmpq	$209999, %rcx
	jne	.L4
.LBE7:
.LBB8:
	.loc 1 18 57 is_stmt 1 view .LVU14
	movq	%rbp, %rdi
	call	wait_for_word@PLT
.LVL8:
	imulq	$301, %rbx, %rbx
	cvttsd2sil	(%r12,%rbx), %edx
	leal	-2(%rdx,%rax), %ebx
.LVL9:
	.loc 1 18 57 is_stmt 0 view .LVU15
.LBE8:
.LBE2:
	.loc 1 19 12 is_stmt 1 view .LVU16
	movq	%rbp, %rdi
	call	free@PLT
.LVL10:
	.loc 1 19 12 is_stmt 0 view .LVU17
	movl	%ebx, %eax
	popq	%rbx
	.cfi_def_cfa_offset 24
.LVL11:
	.loc 1 19 12 view .LVU18
	popq	%rbp
	.cfi_def_cfa_offset 16
	popq	%r12
	.cfi_def_cfa_offset 8
.LVL12:
	.loc 1 19 12 view .LVU19
	ret
	.cfi_endproc
.LFE0:
	.size	run, .-run
	.section	.rodata.cst4,"aM",@progbits,4
	.align 4
.LC0:
	.long	1065353216
	.section	.rodata.cst8,"aM",@progbits,8
	.align 8
.LC1:
	.long	0
	.long	1073741824
	.text
.Letext0:
	.file 2 "<built-in>"
	.section	.debug_info,"",@progbits
.Ldebug_info0:
	.long	0x192
	.value	0x5
	.byte	0x1
	.byte	0x8
	.long	.Ldebug_abbrev0
	.uleb128 0x7
	.long	.LASF14
	.byte	0x23
	.byte	0x2
	.long	.LASF0
	.long	.LASF1
	.quad	.Ltext0
	.quad	.Letext0-.Ltext0
	.long	.Ldebug_line0
	.uleb128 0x1
	.byte	0x8
	.byte	0x5
	.long	.LASF6
	.uleb128 0x8
	.string	"run"
	.byte	0x1
	.byte	0x3
	.byte	0x1b
	.long	0xfe
	.quad	.LFB0
	.quad	.LFE0-.LFB0
	.uleb128 0x1
	.byte	0x9c
	.long	0xfe
	.uleb128 0x9
	.long	.LASF4
	.byte	0x1
	.byte	0xd
	.byte	0x12
	.long	0xfe
	.uleb128 0x5
	.long	.LASF2
	.byte	0xb
	.byte	0x2a
	.long	0x105
	.long	.LLST0
	.long	.LVUS0
	.uleb128 0x5
	.long	.LASF3
	.byte	0xc
	.byte	0x20
	.long	0x133
	.long	.LLST1
	.long	.LVUS1
	.uleb128 0xa
	.long	.LASF5
	.long	0xfe
	.long	.LLST2
	.long	.LVUS2
	.uleb128 0x3
	.quad	.LVL1
	.long	0x177
	.long	0xb6
	.uleb128 0x2
	.uleb128 0x1
	.byte	0x55
	.uleb128 0x5
	.byte	0xc
	.long	0x124f80
	.byte	0
	.uleb128 0x3
	.quad	.LVL4
	.long	0x177
	.long	0xd1
	.uleb128 0x2
	.uleb128 0x1
	.byte	0x55
	.uleb128 0x5
	.byte	0xc
	.long	0x19a280
	.byte	0
	.uleb128 0x3
	.quad	.LVL8
	.long	0x180
	.long	0xe9
	.uleb128 0x2
	.uleb128 0x1
	.byte	0x55
	.uleb128 0x2
	.byte	0x76
	.sleb128 0
	.byte	0
	.uleb128 0xb
	.quad	.LVL10
	.long	0x18c
	.uleb128 0x2
	.uleb128 0x1
	.byte	0x55
	.uleb128 0x2
	.byte	0x76
	.sleb128 0
	.byte	0
	.byte	0
	.uleb128 0x1
	.byte	0x4
	.byte	0x5
	.long	.LASF7
	.uleb128 0xc
	.uleb128 0x2
	.byte	0x97
	.byte	0x6
	.uleb128 0x4
	.byte	0x97
	.byte	0x6
	.byte	0x30
	.byte	0x2e
	.long	0x12c
	.long	0x12c
	.uleb128 0x4
	.uleb128 0x4
	.byte	0x97
	.byte	0x23
	.uleb128 0x30
	.byte	0x6
	.uleb128 0x4
	.byte	0x97
	.byte	0x23
	.uleb128 0x38
	.byte	0x6
	.uleb128 0x9
	.byte	0x97
	.byte	0x23
	.uleb128 0x28
	.byte	0x6
	.byte	0x97
	.byte	0x23
	.uleb128 0x20
	.byte	0x6
	.byte	0x1e
	.byte	0
	.uleb128 0x1
	.byte	0x4
	.byte	0x4
	.long	.LASF8
	.uleb128 0xd
	.byte	0x1
	.uleb128 0x2
	.byte	0x97
	.byte	0x6
	.uleb128 0x4
	.byte	0x97
	.byte	0x6
	.byte	0x30
	.byte	0x2e
	.long	0x170
	.long	0x170
	.uleb128 0x4
	.uleb128 0x4
	.byte	0x97
	.byte	0x23
	.uleb128 0x30
	.byte	0x6
	.uleb128 0x4
	.byte	0x97
	.byte	0x23
	.uleb128 0x38
	.byte	0x6
	.uleb128 0x9
	.byte	0x97
	.byte	0x23
	.uleb128 0x28
	.byte	0x6
	.byte	0x97
	.byte	0x23
	.uleb128 0x20
	.byte	0x6
	.byte	0x1e
	.uleb128 0x4
	.uleb128 0x4
	.byte	0x97
	.byte	0x23
	.uleb128 0x48
	.byte	0x6
	.uleb128 0x4
	.byte	0x97
	.byte	0x23
	.uleb128 0x50
	.byte	0x6
	.uleb128 0x9
	.byte	0x97
	.byte	0x23
	.uleb128 0x40
	.byte	0x6
	.byte	0x97
	.byte	0x23
	.uleb128 0x20
	.byte	0x6
	.byte	0x1e
	.byte	0
	.uleb128 0x1
	.byte	0x8
	.byte	0x4
	.long	.LASF9
	.uleb128 0x6
	.long	.LASF10
	.long	.LASF12
	.uleb128 0xe
	.long	.LASF15
	.long	.LASF15
	.byte	0x1
	.byte	0x12
	.byte	0x39
	.uleb128 0x6
	.long	.LASF11
	.long	.LASF13
	.byte	0
	.section	.debug_abbrev,"",@progbits
.Ldebug_abbrev0:
	.uleb128 0x1
	.uleb128 0x24
	.byte	0
	.uleb128 0xb
	.uleb128 0xb
	.uleb128 0x3e
	.uleb128 0xb
	.uleb128 0x3
	.uleb128 0xe
	.byte	0
	.byte	0
	.uleb128 0x2
	.uleb128 0x49
	.byte	0
	.uleb128 0x2
	.uleb128 0x18
	.uleb128 0x7e
	.uleb128 0x18
	.byte	0
	.byte	0
	.uleb128 0x3
	.uleb128 0x48
	.byte	0x1
	.uleb128 0x7d
	.uleb128 0x1
	.uleb128 0x7f
	.uleb128 0x13
	.uleb128 0x1
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0x4
	.uleb128 0x21
	.byte	0
	.uleb128 0x22
	.uleb128 0x18
	.uleb128 0x2f
	.uleb128 0x18
	.uleb128 0x51
	.uleb128 0x18
	.byte	0
	.byte	0
	.uleb128 0x5
	.uleb128 0x34
	.byte	0
	.uleb128 0x3
	.uleb128 0xe
	.uleb128 0x3a
	.uleb128 0x21
	.sleb128 1
	.uleb128 0x3b
	.uleb128 0xb
	.uleb128 0x39
	.uleb128 0xb
	.uleb128 0x49
	.uleb128 0x13
	.uleb128 0x2
	.uleb128 0x17
	.uleb128 0x2137
	.uleb128 0x17
	.byte	0
	.byte	0
	.uleb128 0x6
	.uleb128 0x2e
	.byte	0
	.uleb128 0x3f
	.uleb128 0x19
	.uleb128 0x3c
	.uleb128 0x19
	.uleb128 0x6e
	.uleb128 0xe
	.uleb128 0x3
	.uleb128 0xe
	.uleb128 0x3a
	.uleb128 0x21
	.sleb128 2
	.uleb128 0x3b
	.uleb128 0x21
	.sleb128 0
	.byte	0
	.byte	0
	.uleb128 0x7
	.uleb128 0x11
	.byte	0x1
	.uleb128 0x25
	.uleb128 0xe
	.uleb128 0x13
	.uleb128 0xb
	.uleb128 0x42
	.uleb128 0xb
	.uleb128 0x3
	.uleb128 0x1f
	.uleb128 0x1b
	.uleb128 0x1f
	.uleb128 0x11
	.uleb128 0x1
	.uleb128 0x12
	.uleb128 0x7
	.uleb128 0x10
	.uleb128 0x17
	.byte	0
	.byte	0
	.uleb128 0x8
	.uleb128 0x2e
	.byte	0x1
	.uleb128 0x3f
	.uleb128 0x19
	.uleb128 0x3
	.uleb128 0x8
	.uleb128 0x3a
	.uleb128 0xb
	.uleb128 0x3b
	.uleb128 0xb
	.uleb128 0x39
	.uleb128 0xb
	.uleb128 0x49
	.uleb128 0x13
	.uleb128 0x11
	.uleb128 0x1
	.uleb128 0x12
	.uleb128 0x7
	.uleb128 0x40
	.uleb128 0x18
	.uleb128 0x7a
	.uleb128 0x19
	.uleb128 0x1
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0x9
	.uleb128 0x34
	.byte	0
	.uleb128 0x3
	.uleb128 0xe
	.uleb128 0x3a
	.uleb128 0xb
	.uleb128 0x3b
	.uleb128 0xb
	.uleb128 0x39
	.uleb128 0xb
	.uleb128 0x49
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0xa
	.uleb128 0x34
	.byte	0
	.uleb128 0x3
	.uleb128 0xe
	.uleb128 0x49
	.uleb128 0x13
	.uleb128 0x34
	.uleb128 0x19
	.uleb128 0x2
	.uleb128 0x17
	.uleb128 0x2137
	.uleb128 0x17
	.byte	0
	.byte	0
	.uleb128 0xb
	.uleb128 0x48
	.byte	0x1
	.uleb128 0x7d
	.uleb128 0x1
	.uleb128 0x7f
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0xc
	.uleb128 0x1
	.byte	0x1
	.uleb128 0x50
	.uleb128 0x18
	.uleb128 0x4e
	.uleb128 0x18
	.uleb128 0x49
	.uleb128 0x13
	.uleb128 0x1
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0xd
	.uleb128 0x1
	.byte	0x1
	.uleb128 0x9
	.uleb128 0xb
	.uleb128 0x50
	.uleb128 0x18
	.uleb128 0x4f
	.uleb128 0x18
	.uleb128 0x49
	.uleb128 0x13
	.uleb128 0x1
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0xe
	.uleb128 0x2e
	.byte	0
	.uleb128 0x3f
	.uleb128 0x19
	.uleb128 0x3c
	.uleb128 0x19
	.uleb128 0x6e
	.uleb128 0xe
	.uleb128 0x3
	.uleb128 0xe
	.uleb128 0x3a
	.uleb128 0xb
	.uleb128 0x3b
	.uleb128 0xb
	.uleb128 0x39
	.uleb128 0xb
	.byte	0
	.byte	0
	.byte	0
	.section	.debug_loclists,"",@progbits
	.long	.Ldebug_loc3-.Ldebug_loc2
.Ldebug_loc2:
	.value	0x5
	.byte	0x8
	.byte	0
	.long	0
.Ldebug_loc0:
.LVUS0:
	.uleb128 .LVU1
	.uleb128 .LVU2
	.uleb128 .LVU2
	.uleb128 .LVU4
	.uleb128 .LVU4
	.uleb128 .LVU17
	.uleb128 .LVU17
	.uleb128 0
.LLST0:
	.byte	0x4
	.uleb128 .LVL0-.Ltext0
	.uleb128 .LVL2-.Ltext0
	.uleb128 0x16
	.byte	0x30
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x93
	.uleb128 0x8
	.byte	0x34
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x93
	.uleb128 0x4
	.byte	0x31
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x33
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x93
	.uleb128 0x22
	.byte	0x4
	.uleb128 .LVL2-.Ltext0
	.uleb128 .LVL3-.Ltext0
	.uleb128 0x18
	.byte	0x50
	.byte	0x93
	.uleb128 0x8
	.byte	0x9
	.byte	0xff
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x34
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x93
	.uleb128 0x4
	.byte	0x31
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x33
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x93
	.uleb128 0x22
	.byte	0x4
	.uleb128 .LVL3-.Ltext0
	.uleb128 .LVL10-.Ltext0
	.uleb128 0x18
	.byte	0x56
	.byte	0x93
	.uleb128 0x8
	.byte	0x9
	.byte	0xff
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x34
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x93
	.uleb128 0x4
	.byte	0x31
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x33
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x93
	.uleb128 0x22
	.byte	0x4
	.uleb128 .LVL10-.Ltext0
	.uleb128 .LFE0-.Ltext0
	.uleb128 0x19
	.byte	0x30
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x9
	.byte	0xff
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x34
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x93
	.uleb128 0x4
	.byte	0x31
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x33
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x93
	.uleb128 0x22
	.byte	0
.LVUS1:
	.uleb128 .LVU1
	.uleb128 .LVU7
	.uleb128 .LVU7
	.uleb128 .LVU8
	.uleb128 .LVU8
	.uleb128 .LVU10
	.uleb128 .LVU10
	.uleb128 .LVU19
	.uleb128 .LVU19
	.uleb128 0
.LLST1:
	.byte	0x4
	.uleb128 .LVL0-.Ltext0
	.uleb128 .LVL5-.Ltext0
	.uleb128 0x12
	.byte	0x93
	.uleb128 0x10
	.byte	0x38
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x93
	.uleb128 0x4
	.byte	0x32
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x33
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x93
	.uleb128 0x3a
	.byte	0x4
	.uleb128 .LVL5-.Ltext0
	.uleb128 .LVL6-.Ltext0
	.uleb128 0x15
	.byte	0x50
	.byte	0x93
	.uleb128 0x8
	.byte	0x93
	.uleb128 0x8
	.byte	0x38
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x93
	.uleb128 0x4
	.byte	0x32
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x33
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x93
	.uleb128 0x3a
	.byte	0x4
	.uleb128 .LVL6-.Ltext0
	.uleb128 .LVL7-.Ltext0
	.uleb128 0x19
	.byte	0x50
	.byte	0x93
	.uleb128 0x8
	.byte	0xb
	.value	0xfed3
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x38
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x93
	.uleb128 0x4
	.byte	0x32
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x33
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x93
	.uleb128 0x3a
	.byte	0x4
	.uleb128 .LVL7-.Ltext0
	.uleb128 .LVL12-.Ltext0
	.uleb128 0x19
	.byte	0x5c
	.byte	0x93
	.uleb128 0x8
	.byte	0xb
	.value	0xfed3
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x38
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x93
	.uleb128 0x4
	.byte	0x32
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x33
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x93
	.uleb128 0x3a
	.byte	0x4
	.uleb128 .LVL12-.Ltext0
	.uleb128 .LFE0-.Ltext0
	.uleb128 0x18
	.byte	0x93
	.uleb128 0x8
	.byte	0xb
	.value	0xfed3
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x38
	.byte	0x9f
	.byte	0x93
	.uleb128 0x8
	.byte	0x93
	.uleb128 0x4
	.byte	0x32
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x33
	.byte	0x9f
	.byte	0x93
	.uleb128 0x1
	.byte	0x93
	.uleb128 0x3a
	.byte	0
.LVUS2:
	.uleb128 .LVU15
	.uleb128 .LVU18
	.uleb128 .LVU18
	.uleb128 0
.LLST2:
	.byte	0x4
	.uleb128 .LVL9-.Ltext0
	.uleb128 .LVL11-.Ltext0
	.uleb128 0x1
	.byte	0x53
	.byte	0x4
	.uleb128 .LVL11-.Ltext0
	.uleb128 .LFE0-.Ltext0
	.uleb128 0x1
	.byte	0x50
	.byte	0
.Ldebug_loc3:
	.section	.debug_aranges,"",@progbits
	.long	0x2c
	.value	0x2
	.long	.Ldebug_info0
	.byte	0x8
	.byte	0
	.value	0
	.value	0
	.quad	.Ltext0
	.quad	.Letext0-.Ltext0
	.quad	0
	.quad	0
	.section	.debug_line,"",@progbits
.Ldebug_line0:
	.section	.debug_str,"MS",@progbits,1
.LASF14:
	.string	"GNU Fortran2008 12.2.0 -mtune=generic -march=x86-64 -g -O1 -fintrinsic-modules-path /usr/lib/gcc/x86_64-linux-gnu/12/finclude -fpre-include=/usr/include/finclude/x86_64-linux-gnu/math-vector-fortran.h"
.LASF2:
	.string	"field"
.LASF12:
	.string	"__builtin_malloc"
.LASF6:
	.string	"integer(kind=8)"
.LASF15:
	.string	"wait_for_word"
.LASF10:
	.string	"malloc"
.LASF9:
	.string	"real(kind=8)"
.LASF11:
	.string	"free"
.LASF7:
	.string	"integer(kind=4)"
.LASF4:
	.string	"error"
.LASF13:
	.string	"__builtin_free"
.LASF5:
	.string	"__result_run"
.LASF3:
	.string	"grid"
.LASF8:
	.string	"real(kind=4)"
	.section	.debug_line_str,"MS",@progbits,1
.LASF0:
	.string	"arrays.f90"
.LASF1:
	.string	"."
	.ident	"GCC: (Debian 12.2.0-14+deb12u1) 12.2.0"
	.section	.note.GNU-stack,"",@progbits
