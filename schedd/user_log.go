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
	if entry, ok := queue.JobstateOf(s.queue, e); ok {
		s.pending.userLog = append(s.pending.userLog, entry)
		queue.NoteJobstateWritten(s.queue, entry.Job.Seq, s.userLogs.TakeWritten(entry.Job.Seq))
	}
	noteFlowFiles(s, e)
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
	for _, e := range queue.JobstateEntries(s.queue) {
		s.userLogs.Enqueue(e, userlog.Records(e), true)
	}
	openFlowFiles(s)
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

// openFlowFiles makes the writer of the files that show how flows go. It begins with all
// of them.
func openFlowFiles(s *Schedd) {
	s.flowFiles = userlog.NewFlowFiles(s.users, s.log, func(ctx context.Context, seq uint64) (c *queue.FlowCapture) {
		if err := s.callLoop(ctx, func(now time.Time) { c = queue.CaptureFlow(s.queue, seq, now) }); err != nil {
			return nil
		}
		return c
	})
	for _, seq := range queue.FlowsWithFiles(s.queue) {
		s.flowFiles.Resume(seq)
	}
}

// noteFlowFiles has the files of a flow written after an event that was just applied.
func noteFlowFiles(s *Schedd, e *queue.JobEvent) {
	if seq, ok := queue.ChangedFlow(s.queue, e); ok {
		if c := queue.EndedFlow(s.queue, seq, s.clock.now); c != nil {
			s.afterCommit(func() { s.flowFiles.Finish(c) })
		} else {
			s.flowFiles.Change(seq)
		}
	}
	for _, save := range queue.SavePointsOf(s.queue, e) {
		s.afterCommit(func() { go writeSavePoint(s.daemonContext, s, save) })
	}
}

// writeSavePoint writes a save point with the rights of the flow's user.
func writeSavePoint(ctx context.Context, s *Schedd, r queue.FlowRescue) {
	ctx, cancel := context.WithTimeout(ctx, rescueTimeout)
	defer cancel()
	if err := userlog.WriteSavePoint(ctx, s.users, r); err != nil {
		s.log.Warn("a save point of a flow cannot be written", "file", r.Base, "uid", r.UID, "error", err)
	}
}
