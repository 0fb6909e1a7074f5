package schedd

import (
	"context"
	"time"

	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/userlog"
)

// noteUserLog notes what the user log of a job is to say of an event that was just
// applied. It is written when the event is on disk.
func noteUserLog(s *Schedd, e *queue.JobEvent) {
	if s.userLogs == nil {
		return
	}
	if entry, ok := queue.UserLogOf(s.queue, e); ok {
		s.pending.userLog = append(s.pending.userLog, entry)
	}
	if rescue, ok := queue.FlowRescueOf(s.queue, e); ok {
		s.afterCommit(func() { go writeRescue(s.daemonContext, s, rescue) })
	}
}

// rescueTimeout bounds the writing of a rescue file.
const rescueTimeout = time.Minute

// writeRescue writes a rescue file with the rights of the flow's user, under the next
// number that is free.
func writeRescue(ctx context.Context, s *Schedd, r queue.FlowRescue) {
	ctx, cancel := context.WithTimeout(ctx, rescueTimeout)
	defer cancel()
	name, err := userlog.WriteRescue(ctx, s.users, r)
	if err != nil {
		s.log.Warn("a rescue file cannot be written", "file", r.Base, "uid", r.UID, "error", err)
		return
	}
	s.log.Info("a flow has ended early", "rescue", name)
}

// writeUserLog passes on what the events of a batch have to say, which is on disk.
func writeUserLog(w *userlog.Writer, entries []queue.UserLogEntry) {
	for _, e := range entries {
		w.Enqueue(e, userlog.Records(e), false)
	}
}

// openUserLogs makes the writer of user logs, which begins with what a restart has left
// out.
func openUserLogs(s *Schedd) error {
	s.userLogs = userlog.NewWriter(s.users, s.log)
	if seqs := queue.UserLogJobs(s.queue); len(seqs) > 0 {
		events, err := s.journal.Events(seqs...)
		if err != nil {
			return err
		}
		for _, seq := range seqs {
			queue.ReplayUserLog(s.queue, seq, events[seq], func(e queue.UserLogEntry) {
				s.userLogs.Enqueue(e, userlog.Records(e), true)
			})
		}
	}
	return nil
}
