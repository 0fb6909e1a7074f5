package starter

import (
	"syscall"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// appendJournal appends to the journal, in one write, so that a record is there as a
// whole or seen to be torn. It is not forced to disk: the journal has to outlive this
// process, not the machine, whose end is the end of the task as well.
func (s *starterProcess) appendJournal(m *proto.StarterMessage) syscall.Errno {
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

// maxJournal is when a journal that says nothing any more is emptied, in bytes.
const maxJournal = 64 << 10

// discardTask makes an ended task's place free.
func (s *starterProcess) discardTask(a proto.TaskAttempt) {
	if s.state.Phase != proto.Ended || s.state.Attempt != a {
		return
	}
	if s.written < maxJournal || syscall.Ftruncate(s.journal, 0) != nil {
		if err := s.appendJournal(&proto.StarterMessage{Type: proto.TypeDiscarded, Attempt: a}); err != 0 {
			logError("journal", err)
		}
	} else {
		s.written = 0
	}
	s.state = proto.StarterState{Starter: s.state.Starter}
	s.startCmd = proto.StartCmd{}
}
