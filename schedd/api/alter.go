package api

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/admission"
	"github.com/roost-batch/roost/schedd/queue"
)

// decideAlter decides to change what a job asks for, and whether it is held.
func (act *jobActions) decideAlter(now time.Time, who queue.CallerIdentity, t queue.TaskSelector,
	m *wire.Alteration) ([]queue.JobEvent, error) {
	changes, err := classad.Parse(m.GetChanges())
	if err != nil {
		return nil, fmt.Errorf("%v: the changes: %w: %w", t, roost.Invalid, err)
	}
	a := queue.JobAlteration{Changes: changes, Count: int(m.GetCount()), ExpectedVersion: m.GetBasis(),
		ApplyDefaults: func(spec *queue.SubmitSpec) error {
			return act.checkAltered(who, t, changes, spec)
		}}
	for _, c := range m.GetColumns() {
		a.Columns = append(a.Columns, queue.TaskColumn{Name: c.GetName(), Values: c.GetValues()})
	}
	events, err := act.queue.AlterJob(now, who, t, a, act.loop.SubmitLimits())
	if err != nil {
		return nil, err
	}
	held, err := act.decideAlterHold(now, who, t, m.GetHold())
	if err != nil {
		return nil, err
	}
	act.leader.RequestRecheck(t.Job.Seq)
	return append(events, held...), nil
}

// decideAlterHold decides on the hold or release that is a part of an alteration. It is
// no error there if the tasks are already held or released.
func (act *jobActions) decideAlterHold(now time.Time, who queue.CallerIdentity, t queue.TaskSelector,
	word string) (events []queue.JobEvent, err error) {
	switch word {
	case "":
	case "hold":
		events, err = act.queue.HoldTasks(now, who, t, "")
	case "release":
		if err = act.checkUncertain(act.queue, t); err == nil {
			events, err = act.queue.ReleaseTasks(now, who, t)
		}
	default:
		err = fmt.Errorf("%v: %w: a job is to be held or released, and not %q", t, roost.Invalid, word)
	}
	if err != nil && rpc.KindOf(err) == roost.Conflict && !errors.Is(err, queue.ErrWholeJobOnly) {
		return nil, nil
	}
	return events, err
}

// checkAltered has an altered job admitted anew. Administrators may have the jobs of
// others exceed a queue's limits (OpenPBS, req_modifyjob).
func (act *jobActions) checkAltered(who queue.CallerIdentity, t queue.TaskSelector, changes *classad.Ad,
	spec *queue.SubmitSpec) error {
	err := admission.ApplyAlteration(act.leader.Policy(), changes, spec)
	if err == nil {
		err = act.checkRights(t, changes, spec)
	}
	if st, _ := act.queue.Status(t.Job.Seq); who.Admin && st.UID != who.UID && errors.Is(err, roost.Exhausted) {
		return nil
	}
	return err
}

// checkRights refuses a job with changes that its owner may not have; no changes: a new
// revision of it. The owner counts, whoever changes the job. Nobody is refused as long as
// no leader has said who may have what.
func (act *jobActions) checkRights(t queue.TaskSelector, changes *classad.Ad, spec *queue.SubmitSpec) error {
	p := act.leader.Policy()
	if p == nil {
		return nil
	}
	st, _ := act.queue.Status(t.Job.Seq)
	node, ok := spec.Ad.Str(roost.AttrSubmitHost)
	if !ok {
		node = t.Job.Host
	}
	return admission.CheckRights(p, st.Owner, node, changes, spec)
}

// decideMove decides that a job moves to another queue or to a reservation. It leaves the
// queue and the reservation that it is in. The new queue's defaults replace those of the
// old one. A running job does not move (OpenPBS, req_movejob).
func (act *jobActions) decideMove(now time.Time, who queue.CallerIdentity, t queue.TaskSelector,
	to string) ([]queue.JobEvent, error) {
	events, err := act.queue.AlterJob(now, who, t, queue.JobAlteration{Changes: classad.New(), ExpectedVersion: -1,
		OnlyIdle: true, ApplyDefaults: func(spec *queue.SubmitSpec) error {
			return act.enterNewQueue(t, spec, to)
		}}, act.loop.SubmitLimits())
	if err == nil {
		act.leader.RequestRecheck(t.Job.Seq)
	}
	return events, err
}

// enterNewQueue makes a job what it would be, had it been submitted to that queue.
func (act *jobActions) enterNewQueue(t queue.TaskSelector, spec *queue.SubmitSpec, to string) error {
	st, ok := act.queue.Status(t.Job.Seq)
	if !ok {
		return fmt.Errorf("%v: %w", t, roost.NotFound)
	}
	e := act.leader.NewQueueAdmission(&st)
	return e.MoveToQueue(spec, to)
}

// decideReorder decides that two jobs change places. Jobs of different queues change
// queues too, if each queue takes the other job (OpenPBS, req_orderjob).
func (act *jobActions) decideReorder(chosen []selectionTarget, who queue.CallerIdentity,
	now time.Time) *wire.ActReply_Result {
	result := &wire.ActReply_Result{}
	events, err := act.decideSwap(chosen, who, now)
	for _, t := range chosen {
		result.Id = strings.TrimPrefix(result.Id+" or "+t.text, " or ")
	}
	if err != nil {
		result.Error, result.Kind, result.Refusal = err.Error(), uint32(rpc.KindOf(err)), pbsRefusal(err)
		return result
	}
	act.loop.CommitEvents(events...)
	return result
}

func (act *jobActions) decideSwap(chosen []selectionTarget, who queue.CallerIdentity,
	now time.Time) ([]queue.JobEvent, error) {
	var queues []string
	for _, t := range chosen {
		if t.err != nil {
			return nil, t.err
		}
		if err := act.mustBeQueued(t.TaskSelector); err != nil {
			return nil, err
		}
		st, _ := act.queue.Status(t.Job.Seq)
		queues = append(queues, cmp.Or(st.Reservation, st.Queue))
	}
	if len(chosen) != 2 {
		return nil, fmt.Errorf("%w: two jobs change places, and %d are named", roost.Invalid, len(chosen))
	}
	events, err := act.queue.SwapOrder(now, who, chosen[0].TaskSelector, chosen[1].TaskSelector)
	if err != nil || queues[0] == queues[1] {
		return events, err
	}
	for i, t := range chosen {
		moved, err := act.decideMove(now, who, t.TaskSelector, queues[1-i])
		if err != nil {
			return nil, err
		}
		events = append(events, moved...)
	}
	return events, nil
}
