# The first process of a task's PID namespace: it reaps, and exits as soon as the program
# has. It is this small because every checkpoint contains it. Its bytes never change,
# because a checkpoint image must find the same program on another machine.
#
# argv[1] is the program's pid, in decimal. Descriptor 3 is a file of four bytes that
# receives the program's wait status. All signals are blocked. SIGUSR1 makes this process
# die with its parent (prctl(2), PR_SET_PDEATHSIG), and SIGUSR2 reverts that.
	.globl _start
	.text
_start:
	mov	16(%rsp), %rsi		# argv[1]
	xor	%ebx, %ebx
digit:	movzbl	(%rsi), %eax
	sub	$'0', %eax
	js	ready			# the end of the text
	imul	$10, %ebx, %ebx
	add	%eax, %ebx
	inc	%rsi
	jmp	digit
ready:	push	$-1			# all signals
	mov	$14, %eax		# rt_sigprocmask
	mov	$2, %edi		# SIG_SETMASK
	mov	%rsp, %rsi
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
	push	$-1			# room for a status
	mov	$(1<<9 | 1<<11 | 1<<16), %eax	# SIGUSR1, SIGUSR2, SIGCHLD
	push	%rax			# the set at 0(%rsp), the status at 8(%rsp)
reap:	mov	$61, %eax		# wait4
	or	$-1, %rdi
	lea	8(%rsp), %rsi
	mov	$1, %edx		# WNOHANG
	xor	%r10d, %r10d
	syscall
	cmp	%ebx, %eax
	je	end
	cmp	$-10, %eax		# ECHILD: there is no program, and never was
	je	end
	test	%eax, %eax
	jg	reap
	mov	$128, %eax		# rt_sigtimedwait
	mov	%rsp, %rdi
	xor	%esi, %esi
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
	xor	%esi, %esi
	cmp	$12, %eax		# SIGUSR2
	je	parent
	cmp	$10, %eax		# SIGUSR1
	jne	reap
	mov	$9, %esi		# SIGKILL
parent:	mov	$157, %eax		# prctl
	mov	$1, %edi		# PR_SET_PDEATHSIG
	syscall
	jmp	reap
end:	mov	$18, %eax		# pwrite64
	mov	$3, %edi
	lea	8(%rsp), %rsi
	mov	$4, %edx
	xor	%r10d, %r10d
	syscall
	mov	$231, %eax		# exit_group
	movzbl	9(%rsp), %edi
	syscall
