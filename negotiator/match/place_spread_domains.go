package match

import "strings"

// spreadDomains counts the units of a job by failure domain. Machines with the same value
// of the job's Spread attribute, which may be a rack or a power circuit, fail together.
// Machines without the attribute are one domain.
type spreadDomains struct {
	domainOf []int32 // by machine: number of its domain, -1 where not evaluated yet
	byName   map[string]int32
	units    []int32 // by domain
}

// unitsInDomain returns how many units of the job the failure domain of a machine has.
func (p *negotiationCycle) unitsInDomain(w *requestState, at int) int32 {
	if w.domains == nil {
		p.countByDomain(w)
	}
	return w.domains.units[p.failureDomain(w, at)]
}

// failureDomain returns the number of a machine's domain.
func (p *negotiationCycle) failureDomain(w *requestState, at int) int32 {
	d := w.domains
	if d.domainOf[at] < 0 {
		name := p.Machines[at].Ad.Eval(w.Class.Spread, &p.env).String()
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
	w.domains = &spreadDomains{domainOf: make([]int32, len(p.Machines)), byName: map[string]int32{}}
	for i := range w.domains.domainOf {
		w.domains.domainOf[i] = -1
	}
	for at, m := range p.Machines {
		for i := range m.Claims {
			if taskIsOfJob(m.Claims[i].Job, w.Class.Job) {
				w.domains.units[p.failureDomain(w, at)]++
			}
		}
	}
	for _, at := range p.withPendingGrants {
		for _, one := range p.Pending[p.Machines[at].Name] {
			if one.Request == w.Key {
				w.domains.units[p.failureDomain(w, int(at))]++
			}
		}
	}
	for _, g := range p.result.Grants {
		if g.Request == w.Request {
			w.domains.units[p.failureDomain(w, int(g.Machine.number))] += int32(g.Units)
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
