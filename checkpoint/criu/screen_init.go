package criu

import (
	corex86 "github.com/checkpoint-restore/go-criu/v7/crit/images/core-x86"
	core "github.com/checkpoint-restore/go-criu/v7/crit/images/criu-core"
	"github.com/checkpoint-restore/go-criu/v7/crit/images/mm"
	"github.com/checkpoint-restore/go-criu/v7/crit/images/vma"
)

// The first process of a box is root's own program of a page, and its state comes from
// the image like all else. It is safe for this: its code is compared with the machine's
// own file when the process is there (checkInit); it stands behind a system call that it
// makes, from where its code sets every register before it makes the next; it has no
// handlers of signals and nothing else that could be run; and its data are two words on
// its stack, a set of signals and a status, which lead it nowhere.

// resumePoints are the places, from the beginning of its file, at which it can stand:
// behind its system calls, and where it begins anew.
func resumePoints() []uint64 { return []uint64{0xea, 0x102, 0x123, 0x140, 0x15b} }

// Where its file is mapped, and the parts of x86 that its registers must have: 64 bits,
// user mode.
const (
	initBase = 0x400000
	initEnd  = 0x401000
	userCode = 0x33
	userData = 0x2b
)

// Bits of vma_entry.status: what an area is.
const (
	vmaVDSO     = 1 << 3
	vmaVsyscall = 1 << 2
	vmaFile     = 1 << 6 // private, of a file
	vmaAnon     = 1 << 9 // private, of none
	vmaVVAR     = 1 << 12
)

// screenInit holds the first process against what is said above.
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
		return badImageError("its first process stands where it never does, at %#x", r.GetIp())
	case r.GetSp()%8 != 0 || r.GetSp() < stack.GetStart() || r.GetSp() > stack.GetEnd()-64:
		return badImageError("its first process has no stack")
	case t == nil || t.GetTaskState() != taskAlive || t.GetPersonality() != 0:
		return badImageError("its first process is in no state that it can be in")
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

// checkInitMemory wants its memory to be its code, a stack, and what the kernel gives.
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
