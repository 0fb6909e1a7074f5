# roost-setup carries out a list of system calls that the starter has made. The server of a claim's sandboxes runs it, and so does the
# first process of each before it becomes roost-init: package starter, syscall_list.go, has the form of the list.
#
# Descriptor 3 is a file with the list, which is mapped as a private copy at `list`. %rbx is the entry that is carried out, of nine words:
#
#	 0 number	of the system call, or -1 for a jump
#	 8 arguments	six of them
#	56 target	where it goes on when the call has failed, or the jump is taken
#	64 result	where the result of the call is stored
#
# A failed call stores its error, and in the four bytes behind that its own address, at the beginning of the list. A jump is taken if the
# word at the first argument, masked by the second, is the third; then the fourth is added to the word at `result`.
#
# Nothing is on the stack: a child by vfork(2) shares it.
	.equ	list, 0x10000000
	.equ	first, list + 64
	.globl _start
	.text
_start:
	mov	$8, %eax		# lseek
	mov	$3, %edi
	xor	%esi, %esi
	mov	$2, %edx		# SEEK_END
	syscall
	mov	%rax, %rsi
	mov	$9, %eax		# mmap
	mov	$list, %edi
	mov	$3, %edx		# PROT_READ | PROT_WRITE
	mov	$0x100002, %r10d	# MAP_PRIVATE | MAP_FIXED_NOREPLACE
	mov	$3, %r8d
	xor	%r9d, %r9d
	syscall
	cmp	$list, %rax
	jne	stop
	mov	$first, %ebx
entry:	mov	(%rbx), %rax
	mov	8(%rbx), %rdi
	mov	16(%rbx), %rsi
	mov	24(%rbx), %rdx
	mov	32(%rbx), %r10
	mov	40(%rbx), %r8
	mov	48(%rbx), %r9
	cmp	$-1, %rax
	je	test
	syscall
	cmp	$-4095, %rax
	jae	failed
	mov	64(%rbx), %rcx
	mov	%rax, (%rcx)
next:	add	$72, %rbx
	jmp	entry
test:	and	(%rdi), %rsi
	cmp	%rdx, %rsi
	jne	next
	mov	64(%rbx), %rcx
	add	%r10, (%rcx)
	jmp	jump
failed:	neg	%eax
	mov	%eax, list
	mov	%ebx, list + 4
jump:	mov	56(%rbx), %rbx
	jmp	entry
stop:	mov	$231, %eax		# exit_group
	mov	$127, %edi
	syscall
