package match

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/forecast"
	"github.com/roost-batch/roost/negotiator/share"
)

// Reservation is an advance reservation: from one time until another some machines, or so much of any machines, are for certain people. Others may
// run there only what ends before. Who may use it has to ask for it by name, and then gets nothing else.
type Reservation struct {
	Name          string
	Users, Groups []string        // for whom it is; a group means those below it, too
	Nodes         []string        // these machines, whole
	Amount        roost.Resources // or so much, wherever it is
	From, Until   time.Time
}

// Drain keeps a machine free of tasks from a time on: nothing is placed there that does not end before.
type Drain struct {
	Node        string
	Reason      string
	From, Until time.Time // From zero: from now on; Until zero: until it is taken back
}

// open reports whether a reservation is for somebody.
func (r *Reservation) open(who share.Submitter) bool {
	return slices.Contains(r.Users, who.Owner) || slices.ContainsFunc(r.Groups, func(g string) bool {
		return who.Group == g || strings.HasPrefix(who.Group, g+"/") || strings.HasPrefix(who.Group, g+".")
	})
}

// reserve holds what administrators have drained and reserved.
func (p *plan) reserve() {
	for i := range p.Drains {
		d := &p.Drains[i]
		until := unixOr(d.Until, forecast.Never)
		if m := p.byName[d.Node]; m != nil && until > p.now {
			p.keep(int(m.at), forecast.Hold{From: max(unixOr(d.From, p.now), p.now), Until: until, Resources: everything}, hold{drain: d})
			p.out.Kept = append(p.out.Kept, Kept{Machine: d.Node, From: unixOr(d.From, 0), Until: unixOr(d.Until, 0)})
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
				p.keep(int(m.at), forecast.Hold{From: from, Until: until, Resources: everything}, hold{reserved: r})
				p.out.Kept = append(p.out.Kept, Kept{Machine: name, From: r.From.Unix(), Until: until, Reservation: r.Name})
			}
		}
		if len(r.Nodes) == 0 {
			p.reserveAmount(r, from, until)
		}
	}
}

// reserveAmount chooses the machines that an amount is to come from: those first of which nothing is in use by then as far as anybody knows, then by
// name. What is held is not used by others, so that the next plan chooses the same.
func (p *plan) reserveAmount(r *Reservation, from, until forecast.Seconds) {
	type source struct {
		at   int
		busy bool
	}
	var sources []source
	for at, m := range p.Machines {
		if m.drained || p.shut(nil, at) {
			continue
		}
		sources = append(sources, source{at, !m.Total.Fits(p.foresee(at).At(from)) && !p.uses(r, m)})
	}
	slices.SortStableFunc(sources, func(a, b source) int { return cmp.Compare(btoi(a.busy), btoi(b.busy)) })
	left := r.Amount
	for _, s := range sources {
		part := atMost(left, p.Machines[s.at].Total)
		if part == (roost.Resources{}) {
			continue
		}
		left = left.Sub(part)
		part = atLeast(part.Sub(p.usedOf(r, s.at)), roost.Resources{})
		p.keep(s.at, forecast.Hold{From: from, Until: until, Resources: part}, hold{reserved: r})
		p.out.Kept = append(p.out.Kept, Kept{Machine: p.Machines[s.at].Name, From: r.From.Unix(), Until: until, Reservation: r.Name})
		if left == (roost.Resources{}) {
			return
		}
	}
}

// uses reports whether somebody for whom a reservation is has a claim on a machine.
func (p *plan) uses(r *Reservation, m *Machine) bool {
	return slices.ContainsFunc(m.Claims, func(c Claim) bool { return r.open(c.Submitter) })
}

// usedOf is what those have of a machine already for whom a reservation is.
func (p *plan) usedOf(r *Reservation, at int) (sum roost.Resources) {
	for _, c := range p.Machines[at].Claims {
		if r.open(c.Submitter) {
			sum = sum.Add(c.Resources)
		}
	}
	return sum
}

// shut reports whether nothing of a machine is for a want: nil for nobody in particular.
func (p *plan) shut(w *want, at int) bool {
	f := p.futures[at]
	if f == nil {
		return false
	}
	for i, h := range f.Holds {
		if h.Resources == everything && (w == nil || !f.holds[i].entitled(w)) {
			return true
		}
	}
	return false
}

// enter finds the reservation that a request asks for. If it cannot be used now the want has to wait, and w.barred says why.
func (p *plan) enter(w *want) {
	if w.Reservation == "" {
		return
	}
	i := slices.IndexFunc(p.Reservations, func(r Reservation) bool { return r.Name == w.Reservation })
	if i < 0 {
		w.barred = "there is no reservation " + w.Reservation
		return
	}
	r := &p.Reservations[i]
	w.reserved = r
	switch from := r.From.Unix(); {
	case !r.open(w.Submitter):
		w.barred = "reservation " + r.Name + " is not for " + w.Submitter.Owner
	case r.Until.Unix() <= p.now:
		w.barred = "reservation " + r.Name + " ended at " + p.instant(r.Until.Unix())
	case from > p.now:
		w.barred, w.start, w.certainty = "reservation "+r.Name+" begins at "+p.instant(from), from, ByWalltime
	}
}

// within reports whether a want may run on a machine as far as its reservation says where.
func (p *plan) within(w *want, at int) bool {
	if w.reserved == nil {
		return true
	}
	f := p.futures[at]
	return f != nil && slices.ContainsFunc(f.holds, func(h hold) bool { return h.reserved == w.reserved })
}

func unixOr(t time.Time, otherwise forecast.Seconds) forecast.Seconds {
	if t.IsZero() {
		return otherwise
	}
	return t.Unix()
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func atMost(r, s roost.Resources) roost.Resources {
	return roost.Resources{
		CPU: min(r.CPU, s.CPU), Memory: min(r.Memory, s.Memory), Disk: min(r.Disk, s.Disk), GPUs: min(r.GPUs, s.GPUs),
	}
}
