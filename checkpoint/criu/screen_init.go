package criu

import (
	corex86 "github.com/checkpoint-restore/go-criu/v7/crit/images/core-x86"
	core "github.com/checkpoint-restore/go-criu/v7/crit/images/criu-core"
	"github.com/checkpoint-restore/go-criu/v7/crit/images/mm"
	"github.com/checkpoint-restore/go-criu/v7/crit/images/vma"
)

// The first process of a sandbox is root's own program of one page, and its state comes
// from the image like that of the others. It is safe for four reasons. Its code is
// compared with the machine's own file when the process exists (checkInit). It stops
// after a system call of its own, from where its code sets every register before the next
// call. It has no signal handlers, and nothing else executable. And its data are two
// words on its stack, a signal set and a status, which do not affect the control flow.

// resumePoints returns the offsets in its file at which the first process can be stopped.
// They are after its system calls, and at its start.
func resumePoints() []uint64 { return []uint64{0xea, 0x102, 0x123, 0x140, 0x15b} }

// Where the file is mapped, and x86 values that the registers must have: 64 bits, user
// mode.
const (
	initBase = 0x400000
	initEnd  = 0x401000
	userCode = 0x33
	userData = 0x2b
)

// Bits of vma_entry.status, the kind of a memory area.
const (
	vmaVDSO     = 1 << 3
	vmaVsyscall = 1 << 2
	vmaFile     = 1 << 6 // private, of a file
	vmaAnon     = 1 << 9 // private and anonymous
	vmaVVAR     = 1 << 12
)

// screenInit checks the first process for the conditions above.
func screenInit(dir string) error {
	c, err := readEntry(dir, "core-1.img", func() *core.CoreEntry { return &core.CoreEntry{} })
	if err != nil {
		return err
	}
	m, err := readEntry(dir, "mm-1.img", func() *mm.MmEntry { return &mm.MmEntry{} })
	if err != nil {
		return err
	}
	stack, err := checkInitMemory(m)
	if err != nil {
		return err
	}
	r := c.GetThreadInfo().GetGpregs()
	at := false
	for _, place := range resumePoints() {
		at = at || r.GetIp() == initBase+place
	}
	t := c.GetTc()
	rseq := c.GetThreadCore().GetRseqEntry()
	switch {
	case c.GetMtype() != core.CoreEntry_X86_64 || r.GetMode() != corex86.UserX86RegsMode_NATIVE ||
		r.GetCs() != userCode || r.GetSs() != userData:
		return badImageError("its first process runs in another mode")
	case !at:
		return badImageError("its first process is at an unexpected address, %#x", r.GetIp())
	case r.GetSp()%8 != 0 || r.GetSp() < stack.GetStart() || r.GetSp() > stack.GetEnd()-64:
		return badImageError("its first process has no stack")
	case t == nil || t.GetTaskState() != taskAlive || t.GetPersonality() != 0:
		return badImageError("its first process is in an impossible state")
	case rseq.GetRseqAbiPointer() != 0 || rseq.GetRseqCsPointer() != 0:
		return badImageError("its first process has restartable sequences")
	}
	for _, s := range t.GetSigactions() {
		if s.GetSigaction() > 1 { // neither default nor ignored
			return badImageError("its first process handles signals")
		}
	}
	return nil
}

// checkInitMemory checks that the memory is its code, a stack, and the kernel's own
// areas.
func checkInitMemory(m *mm.MmEntry) (stack *vma.VmaEntry, err error) {
	code := 0
	if len(m.GetAios()) > 0 {
		return nil, badImageError("its first process has memory that it never asks for")
	}
	for _, v := range m.GetVmas() {
		status, readOnly := v.GetStatus(), v.GetProt()&2 == 0
		switch {
		case status&vmaFile != 0 && v.GetStart() == initBase && v.GetEnd() == initEnd && v.GetProt() == 5 &&
			v.GetPgoff() == 0:
			code++
		case status&(vmaVDSO|vmaVsyscall|vmaVVAR) != 0 && status&vmaFile == 0 && readOnly:
		case status&vmaAnon != 0 && status&vmaFile == 0 && v.GetProt() == 3 && stack == nil &&
			v.GetEnd() > v.GetStart()+4096:
			stack = v
		default:
			return nil, badImageError("its first process has memory that it never asks for, at %#x", v.GetStart())
		}
	}
	if code != 1 || stack == nil {
		return nil, badImageError("its first process has other memory than it begins with")
	}
	return stack, nil
}
