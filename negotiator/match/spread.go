package match

import "strings"

// domains is where the units of a job are, by failure domain: machines that have the same value of the job's Spread attribute, which may be a rack or
// a power circuit, fail together. Machines without the attribute are one domain.
type domains struct {
	number []int32 // of each machine's domain, -1 where nobody has asked
	byName map[string]int32
	units  []int32 // by domain
}

// crowd is how many units of the job the failure domain of a machine has.
func (p *plan) crowd(w *want, at int) int32 {
	if w.domains == nil {
		p.countDomains(w)
	}
	return w.domains.units[p.domain(w, at)]
}

// domain is the number of a machine's domain.
func (p *plan) domain(w *want, at int) int32 {
	d := w.domains
	if d.number[at] < 0 {
		name := p.Machines[at].Ad.Eval(w.Class.Spread, &p.env).String()
		n, known := d.byName[name]
		if !known {
			n = int32(len(d.units))
			d.byName[name], d.units = n, append(d.units, 0)
		}
		d.number[at] = n
	}
	return d.number[at]
}

// countDomains counts the units that the job has: those that machines tell of, those that were promised, and those that this plan has placed.
func (p *plan) countDomains(w *want) {
	w.domains = &domains{number: make([]int32, len(p.Machines)), byName: map[string]int32{}}
	for i := range w.domains.number {
		w.domains.number[i] = -1
	}
	for at, m := range p.Machines {
		for i := range m.Claims {
			if jobOf(m.Claims[i].Job, w.Class.Job) {
				w.domains.units[p.domain(w, at)]++
			}
		}
	}
	for _, at := range p.promised {
		for _, one := range p.Pending[p.Machines[at].Name] {
			if one.Request == w.Key {
				w.domains.units[p.domain(w, int(at))]++
			}
		}
	}
	for _, g := range p.out.Grants {
		if g.Request == w.Request {
			w.domains.units[p.domain(w, int(g.Machine.at))] += int32(g.Units)
		}
	}
}

// jobOf reports whether a task, "12[3].host", is one of a job, "12.host".
func jobOf(task, job string) bool {
	open := strings.IndexByte(task, '[')
	if open < 0 {
		return task == job && job != ""
	}
	end := strings.IndexByte(task[open:], ']')
	return end > 0 && len(job) == len(task)-end-1 && task[:open] == job[:open] && task[open+end+1:] == job[open:]
}
