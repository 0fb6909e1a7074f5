// roost-init for arm64: init_amd64.S says what it does. x19 is the program's pid.
	.globl _start
	.text
_start:
	ldr	x1, [sp, #16]		// argv[1]
	mov	w19, #0
	mov	w3, #10
digit:	ldrb	w0, [x1], #1
	subs	w0, w0, #'0'
	b.mi	ready			// the end of the text
	madd	w19, w19, w3, w0
	b	digit
ready:	mov	x0, #-1			// all signals
	mov	x1, #(1<<9 | 1<<11)	// SIGUSR1, SIGUSR2
	movk	x1, #1, lsl #16		// SIGCHLD
	stp	x1, x0, [sp, #-32]!	// the set at sp, all signals and then a status at sp+8
	mov	x8, #135		// rt_sigprocmask
	mov	x0, #2			// SIG_SETMASK
	add	x1, sp, #8
	mov	x2, #0
	mov	x3, #8
	svc	#0
reap:	mov	x8, #260		// wait4
	mov	x0, #-1
	add	x1, sp, #8
	mov	x2, #1			// WNOHANG
	mov	x3, #0
	svc	#0
	cmp	w0, w19
	b.eq	end
	cmn	w0, #10			// ECHILD: there is no program, and never was
	b.eq	end
	cmp	w0, #0
	b.gt	reap
	mov	x8, #137		// rt_sigtimedwait
	mov	x0, sp
	mov	x1, #0
	mov	x2, #0
	mov	x3, #8
	svc	#0
	mov	x1, #0
	cmp	w0, #12			// SIGUSR2
	b.eq	parent
	cmp	w0, #10			// SIGUSR1
	b.ne	reap
	mov	x1, #9			// SIGKILL
parent:	mov	x8, #167		// prctl
	mov	x0, #1			// PR_SET_PDEATHSIG
	svc	#0
	b	reap
end:	mov	x8, #68			// pwrite64
	mov	x0, #3
	add	x1, sp, #8
	mov	x2, #4
	mov	x3, #0
	svc	#0
	mov	x8, #94			// exit_group
	ldrb	w0, [sp, #9]
	svc	#0
