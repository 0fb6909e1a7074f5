package api

import (
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/admission"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/jobad"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// decideUpdate decides that a service becomes another revision of itself, or what a user
// wants of its update. The notes say what is done.
func (act *jobActions) decideUpdate(now time.Time, who queue.CallerIdentity, t queue.TaskSelector,
	m *wire.UpdateOrder) (events []queue.JobEvent, notes []string, err error) {
	if word := m.GetCommand(); word != "" {
		c, ok := update.ParseCommand(word)
		if !ok {
			return nil, nil, fmt.Errorf("%v: %w: an update knows no %q", t, roost.Invalid, word)
		}
		if events, err = act.queue.CommandUpdate(now, who, t, c); err == nil && len(events) == 0 {
			s, _ := act.queue.UpdateStatus(t.Job.Seq, now)
			notes = append(notes, fmt.Sprintf("nothing changes; its update is %v", s.State))
		}
		return events, notes, err
	}
	rev := queue.JobRevision{Count: int(m.GetCount()), PlanOnly: m.GetPlan(), CountOnly: m.GetCountOnly(),
		ApplyDefaults: func(spec *queue.SubmitSpec, changes *classad.Ad) error {
			err := admission.ApplyAlteration(act.leader.Policy(), changes, spec)
			if err == nil && !m.GetCountOnly() {
				err = act.checkRights(t, nil, spec)
			}
			if st, _ := act.queue.Status(t.Job.Seq); who.Admin && st.UID != who.UID && errors.Is(err, roost.Exhausted) {
				return nil
			}
			return err
		}}
	if m.GetAd() != "" {
		if rev.Ad, err = classad.Parse(m.GetAd()); err != nil {
			return nil, nil, fmt.Errorf("%v: the job's ad: %w: %w", t, roost.Invalid, err)
		}
	}
	for _, c := range m.GetColumns() {
		rev.Columns = append(rev.Columns, queue.TaskColumn{Name: c.GetName(), Values: c.GetValues()})
	}
	events, plan, err := act.queue.ReviseJob(now, who, t, rev, act.loop.SubmitLimits())
	if err != nil {
		return nil, nil, err
	}
	if len(events) > 0 {
		act.leader.RequestRecheck(t.Job.Seq)
	}
	notes = revisionNotes(plan)
	if !m.GetPlan() && len(plan.NewContent) > 0 {
		if act.sendNewContent(now, who, t, plan.NewContent) > 0 {
			notes = append(notes, fmt.Sprintf("its machines fetch %d new images and packages before they need them",
				len(plan.NewContent)))
		}
	}
	return events, notes, nil
}

// sendNewContent has the machines of a service fetch what the tasks of a new revision
// will need. So their images are there when the old tasks stop. It returns how many
// machines get the message. Nothing depends on it: a machine without it fetches later.
func (act *jobActions) sendNewContent(now time.Time, who queue.CallerIdentity, t queue.TaskSelector,
	digests []string) (machines int) {
	running, err := act.queue.OutputMessageTargets(now, who, t)
	if err != nil {
		return 0
	}
	nodes := map[string]bool{}
	for _, a := range running {
		node := act.queue.NodeOf(a)
		if nodes[node] {
			continue
		}
		nodes[node] = true
		if act.loop.SendToLazily(node, &wire.ToStartd{Of: &wire.ToStartd_FetchContent{
			FetchContent: &wire.FetchContent{Attempt: codec.AttemptRef(a), Digests: digests},
		}}) {
			machines++
		}
	}
	return machines
}

// revisionNotes says in a line each what a new revision changes and does.
func revisionNotes(plan queue.RevisionPlan) (notes []string) {
	switch {
	case plan.Count > plan.CountBefore:
		notes = append(notes, fmt.Sprintf("count: %d tasks are added to %d", plan.Count-plan.CountBefore,
			plan.CountBefore))
	case plan.Count < plan.CountBefore:
		notes = append(notes, fmt.Sprintf("count: the last %d of %d tasks are stopped",
			plan.CountBefore-plan.Count, plan.CountBefore))
	}
	for _, c := range plan.Changes {
		if c.Name == roost.AttrTaskCount || c.Name == jobad.AttrArray {
			continue
		}
		notes = append(notes, fmt.Sprintf("%s: %v", c.Name, c.Effect))
	}
	switch plan.Effect {
	case queue.NoEffect:
		notes = append(notes, fmt.Sprintf("nothing changes; it is at revision %d", plan.Revision))
	case queue.InPlace:
		notes = append(notes, fmt.Sprintf("it is changed in place; it stays at revision %d", plan.Revision))
	case queue.ResizeTask:
		if plan.Revision == plan.Before {
			return append(notes, "each alloc gets its new size where it is, as soon as its machine has room")
		}
		notes = append(notes, fmt.Sprintf("each task gets its new size where it runs, as revision %d; one whose "+
			"machine has no room for that is stopped and started again", plan.Revision))
	case queue.MatchTask:
		notes = append(notes, fmt.Sprintf("each task whose machine satisfies the requirements stays there, as "+
			"revision %d; one whose machine does not is stopped, and started elsewhere", plan.Revision))
	default:
		notes = append(notes, fmt.Sprintf("each task is stopped and started again, as revision %d", plan.Revision))
	}
	return notes
}

// updateRow tells how the newest update of a job goes; nil: it was never updated.
func (v *jobView) updateRow(seq uint64) *wire.UpdateProgress {
	if !v.queue.WasUpdated(seq) {
		return nil
	}
	s, _ := v.queue.UpdateStatus(seq, v.loop.Now())
	m := &wire.UpdateProgress{State: s.State.String(), Revision: s.Target(), Before: s.From,
		Reason: validUTF8(s.Reason), MaxDown: uint32(s.Budget.Limit), Planned: uint32(s.Budget.Planned),
		Failing: uint32(s.Budget.Failing), Begun: s.Begun, Moved: s.Moved,
		PromotesAt: s.PromotesAt, Tasks: map[string]uint32{}}
	if s.Restart || s.Target() == s.From { // there is nothing to go back to
		m.Before = 0
	}
	for state, n := range s.Tasks {
		m.Tasks[state.String()] = uint32(n)
	}
	return m
}
