package schedd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// limitedBy are the attributes by which a job's queue, and quotas, allow it or do not.
func limitedBy() []string {
	return []string{
		roost.AttrRequestCpus, roost.AttrRequestMemory, roost.AttrRequestDisk, roost.AttrRequestGpus, roost.AttrRequestGpuMem, roost.AttrWalltime, roost.AttrPriority,
		roost.AttrCPUTime, roost.AttrProcessCPU, roost.AttrVirtual, roost.AttrProcessVirtual, roost.AttrProcessMemory, roost.AttrFileSize, roost.AttrLimits, roost.AttrRequirements,
	}
}

// alter decides to change what a job asks for, and whether it is held.
func (s *Schedd) alter(now time.Time, who queue.Submitter, t queue.Target, m *wire.Alteration) ([]queue.Event, error) {
	changes, err := classad.Parse(m.GetChanges())
	if err != nil {
		return nil, fmt.Errorf("%v: the changes: %w: %w", t, roost.Invalid, err)
	}
	a := queue.Alteration{Changes: changes, Count: int(m.GetCount()), Basis: m.GetBasis(), Conform: func(spec *queue.Spec) error { return s.conforms(who, t, changes, spec) }}
	for _, c := range m.GetColumns() {
		a.Columns = append(a.Columns, queue.Column{Name: c.GetName(), Values: c.GetValues()})
	}
	events, err := s.queue.Alter(now, who, t, a, s.limits())
	if err != nil {
		return nil, err
	}
	held, err := s.holdToo(now, who, t, m.GetHold())
	if err != nil {
		return nil, err
	}
	s.reconsider(t.Job.Seq)
	return append(events, held...), nil
}

// holdToo decides on a hold, or its release, that is a part of an alteration: that it stands so already is no error there.
func (s *Schedd) holdToo(now time.Time, who queue.Submitter, t queue.Target, word string) (events []queue.Event, err error) {
	switch word {
	case "":
	case "hold":
		events, err = s.queue.Hold(now, who, t, "")
	case "release":
		if err = s.trusted(s.queue, t); err == nil {
			events, err = s.queue.Release(now, who, t)
		}
	default:
		err = fmt.Errorf("%v: %w: a job is to be held or released, and not %q", t, roost.Invalid, word)
	}
	if err != nil && rpc.KindOf(err) == roost.Conflict && !errors.Is(err, queue.ErrPart) {
		return nil, nil
	}
	return events, err
}

// conforms checks what an altered job names, and has its queue fill in and refuse, where what the queue looks at has changed. Administrators may have
// the jobs of others exceed a queue's limits (OpenPBS, req_modifyjob).
func (s *Schedd) conforms(who queue.Submitter, t queue.Target, changes *classad.Ad, spec *queue.Spec) error {
	p := s.policy()
	said := func(name string) bool { _, ok := changes.Lookup(name); return ok }
	if said(roost.AttrGroup) || said(roost.AttrReservation) || said(roost.AttrLimits) {
		if err := namedOne(p, spec); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(limitedBy(), said) {
		return nil
	}
	if filled, ok := spec.Ad.Strings(roost.AttrQueueFilled); ok { // the job says it itself now
		setFilled(spec.Ad, slices.DeleteFunc(filled, func(name string) bool { return said(name) || strings.HasPrefix(name, taken) && said(roost.AttrLimits) }))
	}
	name, _ := spec.Ad.Str(roost.AttrQueue)
	q, ok := findQueue(p, name)
	if !ok {
		return nil
	}
	err := conform(p, q, spec)
	if st, _ := s.queue.Status(t.Job.Seq); who.Admin && st.UID != who.UID && errors.Is(err, roost.Exhausted) {
		return nil
	}
	return err
}

// policy is what administrators have set, as it was heard last.
func (s *Schedd) policy() *wire.Policy {
	if s.negotiator != nil && s.negotiator.admission.policy != nil {
		return s.negotiator.admission.policy
	}
	return s.rules
}

// reconsider has a job asked about anew.
func (s *Schedd) reconsider(seq uint64) {
	if s.negotiator != nil {
		s.negotiator.admission.forget(seq)
	}
}

// setFilled notes in an ad what its queue has given it.
func setFilled(ad *classad.Ad, names []string) {
	if len(names) == 0 {
		ad.Delete(roost.AttrQueueFilled)
		return
	}
	ad.SetStrings(roost.AttrQueueFilled, names)
}

// moveJob decides that a job goes to another queue, which gives it its own defaults for those of the queue before, or to a reservation; it leaves the one that it
// is in. One that runs stays where it is (OpenPBS,
// req_movejob).
func (s *Schedd) moveJob(now time.Time, who queue.Submitter, t queue.Target, to string) ([]queue.Event, error) {
	events, err := s.queue.Alter(now, who, t, queue.Alteration{Changes: classad.New(), Basis: -1, Idle: true, Conform: func(spec *queue.Spec) error {
		return s.received(t, spec, to)
	}}, s.limits())
	if err == nil {
		s.reconsider(t.Job.Seq)
	}
	return events, err
}

// received makes a job what it would be, had it been submitted to that queue.
func (s *Schedd) received(t queue.Target, spec *queue.Spec, to string) error {
	st, ok := s.queue.Status(t.Job.Seq)
	if !ok {
		return fmt.Errorf("%v: %w", t, roost.NotFound)
	}
	e := s.entryOf(&st)
	if to == "" {
		to = e.policy.GetDefaultQueue()
	}
	was, _ := spec.Ad.Str(roost.AttrQueue)
	if reserved, _ := spec.Ad.Str(roost.AttrReservation); cmp.Or(reserved, was) == to {
		return nil
	}
	spec.Ad.Delete(roost.AttrReservation)
	if unmade(e.policy, to) {
		return missing("queue", to, []string{roost.UsualQueue})
	}
	return e.enter(spec, to)
}

// order decides that two jobs change places; of two queues they change these too, if each takes the other (OpenPBS, req_orderjob).
func (s *Schedd) order(chosen []target, who queue.Submitter, now time.Time) *wire.ActReply_Result {
	result := &wire.ActReply_Result{}
	events, err := s.reorder(chosen, who, now)
	for _, t := range chosen {
		result.Id = strings.TrimPrefix(result.Id+" or "+t.text, " or ")
	}
	if err != nil {
		result.Error, result.Kind, result.Refusal = err.Error(), uint32(rpc.KindOf(err)), refusalOf(err)
		return result
	}
	s.decide(events...)
	return result
}

func (s *Schedd) reorder(chosen []target, who queue.Submitter, now time.Time) ([]queue.Event, error) {
	var queues []string
	for _, t := range chosen {
		if t.err != nil {
			return nil, t.err
		}
		if err := s.present(t.Target); err != nil {
			return nil, err
		}
		st, _ := s.queue.Status(t.Job.Seq)
		queues = append(queues, cmp.Or(st.Reserved, st.Queue))
	}
	if len(chosen) != 2 {
		return nil, fmt.Errorf("%w: two jobs change places, and %d are named", roost.Invalid, len(chosen))
	}
	events, err := s.queue.Order(now, who, chosen[0].Target, chosen[1].Target)
	if err != nil || queues[0] == queues[1] {
		return events, err
	}
	for i, t := range chosen {
		moved, err := s.moveJob(now, who, t.Target, queues[1-i])
		if err != nil {
			return nil, err
		}
		events = append(events, moved...)
	}
	return events, nil
}
