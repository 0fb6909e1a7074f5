package match

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// AdvanceReservation reserves machines, or an amount of any machines, for certain users
// from one time until another. Others may run there only what ends before. A request must
// name the reservation to use it, and then runs nowhere else.
type AdvanceReservation struct {
	Name          string
	Users, Groups []string        // who may use it; a group includes those below it
	Nodes         []string        // these machines, as a whole
	Amount        roost.Resources // or this amount, on any machines
	From, Until   time.Time
}

// MachineDrain excludes tasks from a machine from a time on: nothing is placed there that
// does not end before.
type MachineDrain struct {
	Node        string
	Reason      string
	From, Until time.Time // From zero: from now on; Until zero: until the drain is taken back
}

// admits reports whether a submitter may use a reservation.
func (r *AdvanceReservation) admits(who fairshare.Submitter) bool {
	return slices.Contains(r.Users, who.Owner) || slices.ContainsFunc(r.Groups, func(g string) bool {
		return who.Group == g || strings.HasPrefix(who.Group, g+"/") || strings.HasPrefix(who.Group, g+".")
	})
}

// pilotEnd is the drain of each pilot, whose allocation in another batch system ends.
var pilotEnd = MachineDrain{Reason: "its allocation ends"}

// applyReservations applies the drains and advance reservations of administrators.
func (p backfillPlanner) applyReservations() {
	for i := range p.Drains {
		d := &p.Drains[i]
		until := unixOrDefault(d.Until, timeline.Never)
		if m := p.byName[d.Node]; m != nil && until > p.now {
			p.reserveMachine(int(m.number), timeline.Reservation{From: max(unixOrDefault(d.From, p.now), p.now),
				Until: until, Resources: wholeMachine}, reservationHolder{drain: d})
			p.result.Unavailable = append(p.result.Unavailable,
				UnavailableWindow{Machine: d.Node, From: unixOrDefault(d.From, 0), Until: unixOrDefault(d.Until, 0)})
		}
	}
	for at, m := range p.Machines {
		if m.goneAt > 0 { // the schedds have heard it from the pilot itself
			p.reserveMachine(at, timeline.Reservation{From: max(m.goneAt, p.now), Until: timeline.Never,
				Resources: wholeMachine}, reservationHolder{drain: &pilotEnd})
		}
	}
	for i := range p.Reservations {
		r := &p.Reservations[i]
		from, until := max(r.From.Unix(), p.now), r.Until.Unix()
		if until <= p.now {
			continue
		}
		for _, name := range r.Nodes {
			if m := p.byName[name]; m != nil {
				p.reserveMachine(int(m.number), timeline.Reservation{From: from, Until: until, Resources: wholeMachine},
					reservationHolder{advanceReservation: r})
				p.result.Unavailable = append(p.result.Unavailable,
					UnavailableWindow{Machine: name, From: r.From.Unix(), Until: until, Reservation: r.Name})
			}
		}
		if len(r.Nodes) == 0 {
			p.reserveAmount(r, from, until)
		}
	}
}

// reserveAmount chooses the machines for a reserved amount. Machines that are expected to
// be empty by then come first, then the order is by name. Others do not use what is
// reserved, so the next cycle chooses the same.
func (p backfillPlanner) reserveAmount(r *AdvanceReservation, from, until timeline.UnixSeconds) {
	type source struct {
		at   int
		busy bool
	}
	var sources []source
	for at, m := range p.Machines {
		if m.drained || p.closedByReservation(nil, at) {
			continue
		}
		sources = append(sources, source{at, !m.Total.FitsIn(p.timelineOf(at).FreeAt(from)) &&
			!p.holdersHaveClaim(r, m)})
	}
	slices.SortStableFunc(sources, func(a, b source) int { return cmp.Compare(boolToInt(a.busy), boolToInt(b.busy)) })
	left := r.Amount
	for _, s := range sources {
		part := minResources(left, p.Machines[s.at].Total)
		if part == (roost.Resources{}) {
			continue
		}
		left = left.Sub(part)
		part = maxResources(part.Sub(p.usedByHolders(r, s.at)), roost.Resources{})
		p.reserveMachine(s.at, timeline.Reservation{From: from, Until: until, Resources: part},
			reservationHolder{advanceReservation: r})
		p.result.Unavailable = append(p.result.Unavailable,
			UnavailableWindow{Machine: p.Machines[s.at].Name, From: r.From.Unix(), Until: until, Reservation: r.Name})
		if left == (roost.Resources{}) {
			return
		}
	}
}

// holdersHaveClaim reports whether a user of a reservation has a claim on a machine.
func (p backfillPlanner) holdersHaveClaim(r *AdvanceReservation, m *Machine) bool {
	return slices.ContainsFunc(m.Claims, func(c MachineClaim) bool { return r.admits(c.Submitter) })
}

// usedByHolders returns what users of a reservation already hold of a machine.
func (p backfillPlanner) usedByHolders(r *AdvanceReservation, at int) (sum roost.Resources) {
	for _, c := range p.Machines[at].Claims {
		if r.admits(c.Submitter) {
			sum = sum.Add(c.Resources)
		}
	}
	return sum
}

// closedByReservation reports whether reservations close a whole machine for a request,
// or for any request if w is nil.
func (p backfillPlanner) closedByReservation(w *requestState, at int) bool {
	f := p.timelines[at]
	if f == nil {
		return false
	}
	for i, h := range f.Reservations {
		if h.Resources == wholeMachine && (w == nil || !f.holders[i].mayUse(w)) {
			return true
		}
	}
	return false
}

// bindReservation finds the reservation that a request names. If it cannot be used now
// the request waits, and w.unusableReservation says why.
func (p backfillPlanner) bindReservation(w *requestState) {
	if w.Reservation == "" {
		return
	}
	i := slices.IndexFunc(p.Reservations, func(r AdvanceReservation) bool { return r.Name == w.Reservation })
	if i < 0 {
		w.unusableReservation = "there is no reservation " + w.Reservation
		return
	}
	r := &p.Reservations[i]
	w.advanceReservation = r
	switch from := r.From.Unix(); {
	case !r.admits(w.Submitter):
		w.unusableReservation = "reservation " + r.Name + " is not for " + w.Submitter.Owner
	case r.Until.Unix() <= p.now:
		w.unusableReservation = "reservation " + r.Name + " ended at " + p.timeText(r.Until.Unix())
	case from > p.now:
		w.unusableReservation, w.start, w.certainty = "reservation "+r.Name+" begins at "+p.timeText(from),
			from, ByWalltime
	}
}

// inReservation reports whether the request's reservation, if any, includes a machine.
func (p backfillPlanner) inReservation(w *requestState, at int) bool {
	if w.advanceReservation == nil {
		return true
	}
	f := p.timelines[at]
	return f != nil && slices.ContainsFunc(f.holders, func(h reservationHolder) bool {
		return h.advanceReservation == w.advanceReservation
	})
}

func unixOrDefault(t time.Time, otherwise timeline.UnixSeconds) timeline.UnixSeconds {
	if t.IsZero() {
		return otherwise
	}
	return t.Unix()
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func minResources(r, s roost.Resources) roost.Resources {
	return roost.Resources{
		CPU: min(r.CPU, s.CPU), Memory: min(r.Memory, s.Memory), Disk: min(r.Disk, s.Disk), GPUs: min(r.GPUs, s.GPUs),
		IO: r.IO.Min(s.IO),
	}
}
