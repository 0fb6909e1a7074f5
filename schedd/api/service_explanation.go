package api

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// explainService adds to an explanation how a service is, and how far its update is.
func (v *jobView) explainService(reply *wire.WhyReply, st *queue.JobStatus) {
	h := reply.GetStatus().GetService()
	if h == nil || isFinal(st) {
		return
	}
	var also []string
	switch {
	case st.Task == nil:
		also = append(also, st.Reason)
	case h.GetState() == roost.ServiceStarting.String():
		also = append(also, unpassedChecks(h))
	case h.GetState() == roost.ServiceReady.String():
		also = append(also, h.GetState())
	case h.GetState() != "":
		also = append(also, st.Reason)
	}
	if h.GetState() == roost.ServiceUnready.String() || st.Task == nil && h.GetStates()["waiting"] > 0 {
		reply.Advice = append(reply.Advice, "see its output with: roost logs "+reply.GetStatus().GetId())
	}
	if u := reply.GetStatus().GetUpdate(); u != nil && u.GetState() != update.Closed.String() {
		also = append(also, updateSummary(u))
		if next := nextUpdateCommand(u.GetState()); next != "" {
			reply.Advice = append(reply.Advice, fmt.Sprintf(next, st.Job))
		}
	}
	if m := reply.GetStatus(); m.GetState() == "" || m.GetTasks() == 1 {
		also = append(also, autoscaleText(h.GetAutoscale()), sizeText(h.GetVertical()))
	}
	for _, text := range also {
		if text != "" && !strings.Contains(reply.Summary, text) {
			reply.Summary += "; " + text
		}
	}
}

// unpassedChecks says for which checks a starting task waits.
func unpassedChecks(h *wire.ServiceHealth) string {
	var parts []string
	for _, c := range h.GetChecks() {
		switch {
		case c.GetResult() == "":
			parts = append(parts, c.GetName()+" has no result yet")
		case c.GetResult() == "failed":
			parts = append(parts, strings.TrimSuffix(c.GetName()+" fails: "+c.GetDetail(), ": "))
		}
	}
	if len(parts) == 0 {
		return h.GetState()
	}
	return "starting: check " + strings.Join(parts, ", check ")
}

// updateSummary says how far an update is.
func updateSummary(u *wire.UpdateProgress) string {
	total := uint32(0)
	for _, n := range u.GetTasks() {
		total += n
	}
	text := fmt.Sprintf("its update to revision %d is %s, with %d of %d tasks new", u.GetRevision(), u.GetState(),
		u.GetTasks()["new"], total)
	if reason := u.GetReason(); reason != "" {
		text += ": " + reason
	}
	return text
}

// nextUpdateCommand returns by what command of its user an update in a state goes on; ""
// where it needs none. The job's id is to be filled in.
func nextUpdateCommand(state string) string {
	switch state {
	case update.Paused.String(), update.UndoPaused.String():
		return "let the update go on with: roost update --resume %v"
	case update.WaitingPromote.String():
		return "accept its canaries with: roost update --promote %[1]v; or go back with: roost update --undo %[1]v"
	case update.WaitingPulse.String():
		return "let it go on for another interval with: roost update --pulse %v"
	case update.Partial.String(), update.Aborted.String():
		return "go back to the revision before with: roost update --undo %v"
	}
	return ""
}
