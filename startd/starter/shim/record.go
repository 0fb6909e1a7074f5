package shim

import (
	"syscall"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// record appends to the journal, in one write, so that a record is there as a whole or seen to be torn. It is not forced to disk: the
// journal has to outlive this process, not the machine, whose end is the end of the task as well.
func (s *starter) record(m *proto.Message) syscall.Errno {
	r := proto.AppendRecord(make([]byte, 0, 128), m)
	n, err := syscall.Write(s.journal, r)
	s.written += max(n, 0)
	switch {
	case err != nil:
		return errno(err)
	case n != len(r):
		return syscall.ENOSPC
	}
	return 0
}

// longJournal is when a journal that says nothing any more is emptied, in bytes.
const longJournal = 64 << 10

// forget makes an ended task's place free.
func (s *starter) forget(a proto.Attempt) {
	if s.state.Phase != proto.Ended || s.state.Attempt != a {
		return
	}
	if s.written < longJournal || syscall.Ftruncate(s.journal, 0) != nil {
		if err := s.record(&proto.Message{Type: proto.TypeForgot, Attempt: a}); err != 0 {
			complain("journal", err)
		}
	} else {
		s.written = 0
	}
	s.state = proto.State{Starter: s.state.Starter}
	s.order = proto.Order{}
}
