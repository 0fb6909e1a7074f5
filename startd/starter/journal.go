package starter

import (
	"syscall"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// appendJournal appends a record to the journal in one write, so that a record is
// complete or recognisably torn. It is not synced to disk: the journal must outlive this
// process, not the machine, which ends the task as well.
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

// maxJournal is the size, in bytes, at which a journal without a live task is truncated.
const maxJournal = 64 << 10

// discardTask discards the record of an ended task, so that another can start.
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
	releaseSecrets(s)
}
