package schedd

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// sendHostFiles sends the node of an attempt the files that name the machines of its job.
// A node that is away gets them with its next session.
func (s *Schedd) sendHostFiles(a roost.AttemptID) {
	if files := s.transfers.HostFiles(a, s.queue.HostsOfAttempt(a)); files != nil {
		s.sendTo(s.queue.NodeOf(a), &wire.ToStartd{Of: &wire.ToStartd_HostFiles{HostFiles: files}})
	}
}
