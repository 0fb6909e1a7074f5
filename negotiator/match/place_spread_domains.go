package match

import (
	"math/bits"
	"strings"
)

// spreadDomains counts the units of a job by failure domain, for each attribute over
// which it is spread. The widest comes first. Machines with the same value of an
// attribute, which may be a rack or a power circuit, fail together. Machines without the
// attribute are one domain.
type spreadDomains []domainLevel

type domainLevel struct {
	attr     string
	domainOf []int32 // by machine: number of its domain, -1 where not evaluated yet
	byName   map[string]int32
	units    []int32 // by domain
}

// spreadAttrs returns the attributes over which a request is spread, the widest first. It
// is that of its job, or those of the cell for production; nil for none.
func (p *negotiationCycle) spreadAttrs(w *requestState) []string {
	switch {
	case w.Class.Spread != "":
		return w.Class.spreadAttrs[:]
	case len(p.FailureDomains) > 0 && w.Band.IsProd():
		return p.FailureDomains[:min(len(p.FailureDomains), MaxFailureDomains)]
	}
	return nil
}

// domainBits is how many bits of a soft score the units in one failure domain have.
const domainBits = 39 / MaxFailureDomains

// unitsInDomains returns how many units of the job a machine's failure domains have.
// Those of wider domains are in higher bits.
func (p *negotiationCycle) unitsInDomains(w *requestState, at int) (far int64) {
	if w.domains == nil {
		p.countByDomain(w)
	}
	if len(w.domains) == 1 {
		l := &w.domains[0]
		return int64(l.units[p.failureDomain(l, at)])
	}
	for i := range w.domains {
		l := &w.domains[i]
		far = far<<domainBits | saturated(l.units[p.failureDomain(l, at)])
	}
	return far
}

// saturated fits a count into domainBits bits. Large counts lose their lowest bits rather
// than their order.
func saturated(units int32) int64 {
	const exact = 1 << (domainBits - 1)
	if units < exact {
		return int64(units)
	}
	// above that one step for each eighth of a power of two
	shift := bits.Len32(uint32(units)) - 4
	return min(exact+int64(shift)<<3+int64(units>>shift), 1<<domainBits-1)
}

// addToDomains counts units of a request that were placed on a machine.
func (p *negotiationCycle) addToDomains(w *requestState, at, n int) {
	for i := range w.domains {
		l := &w.domains[i]
		l.units[p.failureDomain(l, at)] += int32(n)
	}
}

// failureDomain returns the number of a machine's domain.
func (p *negotiationCycle) failureDomain(d *domainLevel, at int) int32 {
	if d.domainOf[at] < 0 {
		name := p.Machines[at].Ad.Eval(d.attr, &p.env).String()
		n, known := d.byName[name]
		if !known {
			n = int32(len(d.units))
			d.byName[name], d.units = n, append(d.units, 0)
		}
		d.domainOf[at] = n
	}
	return d.domainOf[at]
}

// countByDomain counts the units of the job: those in machine ads, in pending grants and
// in this plan.
func (p *negotiationCycle) countByDomain(w *requestState) {
	attrs := p.spreadAttrs(w)
	w.domains = make(spreadDomains, len(attrs))
	for i, attr := range attrs {
		l := domainLevel{attr: attr, domainOf: make([]int32, len(p.Machines)), byName: map[string]int32{}}
		for at := range l.domainOf {
			l.domainOf[at] = -1
		}
		w.domains[i] = l
	}
	for at, m := range p.Machines {
		for i := range m.Claims {
			if taskIsOfJob(m.Claims[i].Job, w.Class.Job) {
				p.addToDomains(w, at, 1)
			}
		}
	}
	for _, at := range p.withPendingGrants {
		for _, one := range p.Pending[p.Machines[at].Name] {
			if one.Request == w.Key {
				p.addToDomains(w, int(at), 1)
			}
		}
	}
	for _, g := range p.result.Grants {
		if g.Request == w.Request {
			p.addToDomains(w, int(g.Machine.number), g.Units)
		}
	}
}

// taskIsOfJob reports whether a task, "12[3].host", is one of a job, "12.host".
func taskIsOfJob(task, job string) bool {
	open := strings.IndexByte(task, '[')
	if open < 0 {
		return task == job && job != ""
	}
	end := strings.IndexByte(task[open:], ']')
	return end > 0 && len(job) == len(task)-end-1 && task[:open] == job[:open] && task[open+end+1:] == job[open:]
}
