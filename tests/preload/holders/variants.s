	.file	"variants.b592e3150b2b5776-cgu.0"
	.section	.text.run,"ax",@progbits
	.globl	run
	.p2align	4
	.type	run,@function
run:
.Lfunc_begin0:
	.file	1 "." "variants.rs"
	.loc	1 18 0
	.cfi_startproc
	pushq	%r14
	.cfi_def_cfa_offset 16
	pushq	%rbx
	.cfi_def_cfa_offset 24
	subq	$584, %rsp
	.cfi_def_cfa_offset 608
	.cfi_offset %rbx, -24
	.cfi_offset %r14, -16
	leaq	8(%rsp), %rdi
	movl	$576, %edx
	xorl	%esi, %esi
	callq	*memset@GOTPCREL(%rip)
	movl	$16, %ebx
	movq	page@GOTPCREL(%rip), %r14
	.loc	1 0 0 is_stmt 0
.Ltmp0:
	.p2align	4
.LBB0_1:
.Ltmp1:
	.loc	1 22 58 prologue_end is_stmt 1
	callq	*%r14
	.loc	1 22 9 is_stmt 0
	movq	$2, -8(%rsp,%rbx)
	movq	$1, (%rsp,%rbx)
	movq	%rax, 8(%rsp,%rbx)
.Ltmp2:
	.loc	1 21 11 is_stmt 1
	addq	$24, %rbx
.Ltmp3:
	cmpq	$592, %rbx
	jne	.LBB0_1
	.loc	1 0 11 is_stmt 0
	leaq	8(%rsp), %rdi
	.loc	1 25 14 is_stmt 1
	callq	*wait_for_word@GOTPCREL(%rip)
.Ltmp4:
	.loc	1 26 2 epilogue_begin
	addq	$584, %rsp
	.cfi_def_cfa_offset 24
	popq	%rbx
	.cfi_def_cfa_offset 16
	popq	%r14
	.cfi_def_cfa_offset 8
	retq
.Ltmp5:
.Lfunc_end0:
	.size	run, .Lfunc_end0-run
	.cfi_endproc

	.section	.debug_loc,"",@progbits
.Ldebug_loc0:
	.quad	.Ltmp1-.Lfunc_begin0
	.quad	.Ltmp2-.Lfunc_begin0
	.short	9
	.byte	115
	.byte	0
	.byte	17
	.byte	16
	.byte	28
	.byte	17
	.byte	24
	.byte	27
	.byte	159
	.quad	.Ltmp2-.Lfunc_begin0
	.quad	.Ltmp3-.Lfunc_begin0
	.short	12
	.byte	115
	.byte	0
	.byte	17
	.byte	16
	.byte	28
	.byte	17
	.byte	24
	.byte	27
	.byte	17
	.byte	1
	.byte	34
	.byte	159
	.quad	0
	.quad	0
	.section	.debug_abbrev,"",@progbits
	.byte	1
	.byte	17
	.byte	1
	.byte	37
	.byte	14
	.byte	19
	.byte	5
	.byte	3
	.byte	14
	.byte	16
	.byte	23
	.byte	27
	.byte	14
	.byte	17
	.byte	1
	.byte	18
	.byte	6
	.byte	0
	.byte	0
	.byte	2
	.byte	57
	.byte	1
	.byte	3
	.byte	14
	.byte	0
	.byte	0
	.byte	3
	.byte	46
	.byte	1
	.byte	17
	.byte	1
	.byte	18
	.byte	6
	.byte	64
	.byte	24
	.byte	3
	.byte	14
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	73
	.byte	19
	.byte	63
	.byte	25
	.byte	0
	.byte	0
	.byte	4
	.byte	11
	.byte	1
	.byte	17
	.byte	1
	.byte	18
	.byte	6
	.byte	0
	.byte	0
	.byte	5
	.byte	52
	.byte	0
	.byte	2
	.byte	24
	.byte	3
	.byte	14
	.ascii	"\210\001"
	.byte	15
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	6
	.byte	52
	.byte	0
	.byte	2
	.byte	23
	.byte	3
	.byte	14
	.ascii	"\210\001"
	.byte	15
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	7
	.byte	19
	.byte	1
	.byte	3
	.byte	14
	.byte	11
	.byte	11
	.byte	50
	.byte	11
	.ascii	"\210\001"
	.byte	15
	.byte	0
	.byte	0
	.byte	8
	.byte	51
	.byte	1
	.byte	21
	.byte	19
	.byte	0
	.byte	0
	.byte	9
	.byte	13
	.byte	0
	.byte	73
	.byte	19
	.ascii	"\210\001"
	.byte	15
	.byte	56
	.byte	11
	.byte	52
	.byte	25
	.byte	0
	.byte	0
	.byte	10
	.byte	25
	.byte	1
	.byte	22
	.byte	11
	.byte	0
	.byte	0
	.byte	11
	.byte	13
	.byte	0
	.byte	3
	.byte	14
	.byte	73
	.byte	19
	.ascii	"\210\001"
	.byte	15
	.byte	56
	.byte	11
	.byte	0
	.byte	0
	.byte	12
	.byte	19
	.byte	0
	.byte	3
	.byte	14
	.byte	11
	.byte	11
	.byte	50
	.byte	11
	.ascii	"\210\001"
	.byte	15
	.byte	0
	.byte	0
	.byte	13
	.byte	13
	.byte	0
	.byte	3
	.byte	14
	.byte	73
	.byte	19
	.ascii	"\210\001"
	.byte	15
	.byte	56
	.byte	11
	.byte	50
	.byte	11
	.byte	0
	.byte	0
	.byte	14
	.byte	36
	.byte	0
	.byte	3
	.byte	14
	.byte	62
	.byte	11
	.byte	11
	.byte	11
	.byte	0
	.byte	0
	.byte	15
	.byte	1
	.byte	1
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	16
	.byte	33
	.byte	0
	.byte	73
	.byte	19
	.byte	34
	.byte	13
	.byte	55
	.byte	11
	.byte	0
	.byte	0
	.byte	17
	.byte	15
	.byte	0
	.byte	73
	.byte	19
	.byte	3
	.byte	14
	.byte	51
	.byte	6
	.byte	0
	.byte	0
	.byte	18
	.byte	36
	.byte	0
	.byte	3
	.byte	14
	.byte	11
	.byte	11
	.byte	62
	.byte	11
	.byte	0
	.byte	0
	.byte	0
	.section	.debug_info,"",@progbits
.Lcu_begin0:
	.long	.Ldebug_info_end0-.Ldebug_info_start0
.Ldebug_info_start0:
	.short	4
	.long	.debug_abbrev
	.byte	8
	.byte	1
	.long	.Linfo_string0
	.short	28
	.long	.Linfo_string1
	.long	.Lline_table_start0
	.long	.Linfo_string2
	.quad	.Lfunc_begin0
	.long	.Lfunc_end0-.Lfunc_begin0
	.byte	2
	.long	.Linfo_string3
	.byte	3
	.quad	.Lfunc_begin0
	.long	.Lfunc_end0-.Lfunc_begin0
	.byte	1
	.byte	87
	.long	.Linfo_string4
	.byte	1
	.byte	18
	.long	259

	.byte	4
	.quad	.Ltmp1
	.long	.Ltmp4-.Ltmp1
	.byte	5
	.byte	2
	.byte	145
	.byte	8
	.long	.Linfo_string6
	.byte	8
	.byte	1
	.byte	19
	.long	266
	.byte	4
	.quad	.Ltmp1
	.long	.Ltmp4-.Ltmp1
	.byte	6
	.long	.Ldebug_loc0
	.long	.Linfo_string18
	.byte	8
	.byte	1
	.byte	20
	.long	313
	.byte	0
	.byte	0
	.byte	0
	.byte	7
	.long	.Linfo_string16
	.byte	24
	.byte	1
	.byte	8
	.byte	8
	.long	145
	.byte	9
	.long	279
	.byte	8
	.byte	0

	.byte	10
	.byte	0
	.byte	11
	.long	.Linfo_string8
	.long	195
	.byte	8
	.byte	0
	.byte	0
	.byte	10
	.byte	1
	.byte	11
	.long	.Linfo_string9
	.long	203
	.byte	8
	.byte	0
	.byte	0
	.byte	10
	.byte	2
	.byte	11
	.long	.Linfo_string11
	.long	224
	.byte	8
	.byte	0
	.byte	0
	.byte	0
	.byte	12
	.long	.Linfo_string8
	.byte	24
	.byte	1
	.byte	8
	.byte	7
	.long	.Linfo_string9
	.byte	24
	.byte	1
	.byte	8
	.byte	13
	.long	.Linfo_string10
	.long	279
	.byte	8
	.byte	8
	.byte	1
	.byte	0
	.byte	7
	.long	.Linfo_string11
	.byte	24
	.byte	1
	.byte	8
	.byte	13
	.long	.Linfo_string12
	.long	279
	.byte	8
	.byte	8
	.byte	1
	.byte	13
	.long	.Linfo_string13
	.long	286
	.byte	8
	.byte	16
	.byte	1
	.byte	0
	.byte	0
	.byte	0
	.byte	14
	.long	.Linfo_string5
	.byte	5
	.byte	4
	.byte	15
	.long	132
	.byte	16
	.long	306
	.byte	0
	.byte	24
	.byte	0
	.byte	14
	.long	.Linfo_string7
	.byte	7
	.byte	8
	.byte	17
	.long	299
	.long	.Linfo_string15
	.long	0
	.byte	14
	.long	.Linfo_string14
	.byte	7
	.byte	1
	.byte	18
	.long	.Linfo_string17
	.byte	8
	.byte	7
	.byte	14
	.long	.Linfo_string19
	.byte	7
	.byte	8
	.byte	0
.Ldebug_info_end0:
	.section	.text.run,"ax",@progbits
.Lsec_end0:
	.section	.debug_aranges,"",@progbits
	.long	44
	.short	2
	.long	.Lcu_begin0
	.byte	8
	.byte	0
	.zero	4,255
	.quad	.Lfunc_begin0
	.quad	.Lsec_end0-.Lfunc_begin0
	.quad	0
	.quad	0
	.section	.debug_str,"MS",@progbits,1
.Linfo_string0:
	.asciz	"clang LLVM (rustc version 1.95.0 (59807616e 2026-04-14))"
.Linfo_string1:
	.asciz	"variants.rs/@/variants.b592e3150b2b5776-cgu.0"
.Linfo_string2:
	.asciz	"."
.Linfo_string3:
	.asciz	"variants"
.Linfo_string4:
	.asciz	"run"
.Linfo_string5:
	.asciz	"i32"
.Linfo_string6:
	.asciz	"kept"
.Linfo_string7:
	.asciz	"u64"
.Linfo_string8:
	.asciz	"Nothing"
.Linfo_string9:
	.asciz	"Number"
.Linfo_string10:
	.asciz	"__0"
.Linfo_string11:
	.asciz	"Page"
.Linfo_string12:
	.asciz	"number"
.Linfo_string13:
	.asciz	"data"
.Linfo_string14:
	.asciz	"u8"
.Linfo_string15:
	.asciz	"*mut u8"
.Linfo_string16:
	.asciz	"Kept"
.Linfo_string17:
	.asciz	"__ARRAY_SIZE_TYPE__"
.Linfo_string18:
	.asciz	"i"
.Linfo_string19:
	.asciz	"usize"
	.ident	"rustc version 1.95.0 (59807616e 2026-04-14)"
	.section	".note.GNU-stack","",@progbits
	.section	.debug_line,"",@progbits
.Lline_table_start0:
