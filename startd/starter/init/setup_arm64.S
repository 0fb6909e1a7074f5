// roost-setup for arm64: setup_amd64.S says what it does. x19 is the entry that is carried out, x20 the list.
	.equ	list, 0x10000000
	.globl _start
	.text
_start:
	mov	x8, #62			// lseek
	mov	x0, #3
	mov	x1, #0
	mov	x2, #2			// SEEK_END
	svc	#0
	mov	x1, x0
	mov	x8, #222		// mmap
	mov	x20, #list
	mov	x0, x20
	mov	x2, #3			// PROT_READ | PROT_WRITE
	mov	x3, #0x100000		// MAP_FIXED_NOREPLACE
	orr	x3, x3, #2		// MAP_PRIVATE
	mov	x4, #3
	mov	x5, #0
	svc	#0
	cmp	x0, x20
	b.ne	stop
	add	x19, x20, #64
entry:	ldp	x8, x0, [x19]
	ldp	x1, x2, [x19, #16]
	ldp	x3, x4, [x19, #32]
	ldp	x5, x21, [x19, #48]	// x21: the target
	ldr	x22, [x19, #64]		// the place of the result
	cmn	x8, #1
	b.eq	test
	svc	#0
	cmn	x0, #4095
	b.hs	failed
	str	x0, [x22]
next:	add	x19, x19, #72
	b	entry
test:	ldr	x9, [x0]
	and	x9, x9, x1
	cmp	x9, x2
	b.ne	next
	ldr	x9, [x22]
	add	x9, x9, x3
	str	x9, [x22]
	mov	x19, x21
	b	entry
failed:	neg	w0, w0
	stp	w0, w19, [x20]
	mov	x19, x21
	b	entry
stop:	mov	x8, #94			// exit_group
	mov	x0, #127
	svc	#0
