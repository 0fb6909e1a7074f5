package schedd

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/api"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// recordHealth takes in how an attempt of a service is. A node speaks of its own attempts
// only, and its words are cut to a line.
func recordHealth(s *Schedd, p *nodeConn, h *wire.TaskHealth, now time.Time) {
	a := codec.AttemptID(s.node.Name, h.GetAttempt())
	if s.queue.NodeOf(a) != p.Name {
		return
	}
	check := h.GetCheck()
	if roost.CheckCheckName(check) != nil {
		check = ""
	}
	if h.GetState() == wire.HealthState_HEALTH_STATE_LEAVING {
		queue.NoteLeaving(s.queue, a)
	}
	state, failing := codec.ServiceState(h.GetState())
	detail := api.SanitizeSentence(h.GetDetail())
	if state == roost.ServiceStarting && !slices.ContainsFunc(h.GetChecks(), hasTrouble) {
		detail = "" // failures do not count yet
	}
	if e, ok := s.queue.RecordHealth(now, a, state, check, detail); ok {
		s.commitEventsLazily(e)
	}
	s.queue.NoteFailing(a, failing)
	s.service.OnCheckResults(a, h.GetChecks())
}

// hasTrouble reports whether the runs of a check say nothing about the task.
func hasTrouble(c *wire.CheckResult) bool { return c.GetTrouble() != "" }

// saveGangs asks the gangs to save their state whose interval is over: one signal for all
// tasks of a gang.
func saveGangs(s *Schedd, now time.Time) {
	for _, a := range queue.GangsToSave(s.queue, now) {
		s.sendTo(s.queue.NodeOf(a), &wire.ToStartd{Of: &wire.ToStartd_Checkpoint{Checkpoint: &wire.TakeCheckpoint{
			Attempt: codec.AttemptRef(a), Reason: transfer.CheckpointRequested}}})
	}
}
