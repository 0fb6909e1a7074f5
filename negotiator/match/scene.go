package match

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// scene is what is going on at a machine that claims leave, or are about to.
type scene struct {
	used  map[uint64]bool // claims that were chosen already: in this plan, or for grants that the ad does not show yet
	gives []gpu.Placement // what falls free when they have gone
	takes []gpu.Placement // and what of that is promised
}

func (s *scene) took(id uint64) bool { return s != nil && s.used[id] }

// scene returns the scene of a machine as this plan may change it. Where the ad tells of claims that leave, that is how it begins.
func (p *plan) scene(at int) *scene {
	if s := p.scenes[at]; s != nil {
		return s
	}
	if p.scenes == nil {
		p.scenes = map[int]*scene{}
	}
	m, s := p.Machines[at], &scene{used: map[uint64]bool{}}
	p.scenes[at] = s
	p.stages = append(p.stages, at)
	for i := range m.Claims {
		if c := &m.Claims[i]; c.Leaving {
			s.gives = append(s.gives, c.placement(m))
		}
	}
	for i := range m.Heirs {
		s.takes = append(s.takes, m.Heirs[i].placement(m))
	}
	return s
}

// beginHeir takes off what is free of a machine what a promise with victims needs beside what they hold, and notes the rest.
func (p *plan) beginHeir(at int, one *Promise) {
	m, s := p.Machines[at], p.scene(at)
	var held []gpu.Placement
	for i := range m.Claims {
		c := &m.Claims[i]
		if slices.Contains(one.Victims, c.ID) {
			if s.used[c.ID] = true; !c.Leaving {
				held = append(held, c.placement(m))
			}
		}
	}
	now, later := gpu.Cover(p.roomWith(&Class{Resources: one.Resources, App: one.Class}, at, held), held)
	s.gives, s.takes = append(s.gives, held...), append(s.takes, later)
	p.takeNow(at, now)
}

// roomWith says where a unit of a class goes on a machine once some have left; nowhere if there is no room even then.
func (p *plan) roomWith(c *Class, at int, held []gpu.Placement) gpu.Placement {
	s := p.newStage(c, at)
	for _, h := range held {
		s.give(h)
	}
	if !s.fits() {
		return gpu.Placement{Class: c.App}
	}
	if s.f != nil {
		return s.spot
	}
	return gpu.Placement{Class: c.App, Disk: c.Resources.Disk, Parts: []gpu.Part{{CPU: c.Resources.CPU, Memory: c.Resources.Memory}}}
}

// takeNow takes a placement off what is free of a machine, and returns how much that is.
func (p *plan) takeNow(at int, now gpu.Placement) (r roost.Resources) {
	r.Disk = now.Disk
	for _, part := range now.Parts {
		r.CPU, r.Memory = r.CPU+part.CPU, r.Memory+part.Memory
	}
	if p.units[at] == nil {
		p.subtract(at, r, now.Class)
		return r
	}
	if f := p.own(at); f.Fits(now) {
		f.Take(now)
	}
	p.sum(at)
	return r
}

// await reports whether a unit of a want finds room on a machine once those have left that are leaving it already: then it waits for that.
func (p *plan) await(w *want) bool {
	p.openStages()
	// Where there is no room for one now there is none until somebody else is told to leave, and then the machine stands in the list once more.
	for h := &w.hunt; h.looked < len(p.stages); h.looked++ {
		at := p.stages[h.looked]
		if !p.scenes[at].leftover() {
			continue
		}
		if m := p.Machines[at]; m.drained || !p.clear(w, at) || w.Avoid[m.Name] != "" {
			continue
		}
		sc, st := p.scenes[at], p.newStage(w.Class, at)
		for _, g := range sc.gives {
			st.give(g)
		}
		if !st.takeAll(sc.takes) || !st.fits() {
			continue
		}
		if _, ok := p.query(w.Class).Match(p.Machines[at].row, &p.env); !ok {
			continue
		}
		if st.f != nil {
			sc.takes = append(sc.takes, clonePlacement(st.spot))
		} else {
			r := w.Class.Resources
			sc.takes = append(sc.takes, gpu.Placement{Class: w.Class.App, Disk: r.Disk, Parts: []gpu.Part{{CPU: r.CPU, Memory: r.Memory}}})
		}
		return true
	}
	return false
}

// openStages lists the machines that claims are leaving already.
func (p *plan) openStages() {
	if p.staged {
		return
	}
	p.staged = true
	for at := range p.leavers {
		p.scene(int(at))
	}
	slices.Sort(p.stages)
}

// leftover reports whether those who leave leave more than is promised, of what is worth waiting for.
func (s *scene) leftover() bool {
	cpu, cards := roost.MilliCPU(0), 0
	for _, g := range s.gives {
		cards += len(g.Shares)
		for _, part := range g.Parts {
			cpu += part.CPU
		}
	}
	for _, t := range s.takes {
		cards -= len(t.Shares)
		for _, part := range t.Parts {
			cpu -= part.CPU
		}
	}
	return cpu > 0 || cards > 0
}

func clonePlacement(p gpu.Placement) gpu.Placement {
	p.Parts, p.Shares = slices.Clone(p.Parts), slices.Clone(p.Shares)
	return p
}

// stage is a machine on which it is tried out who has to go for a unit of a class to fit. Queues do not count: who waits in them would have had
// nothing of what the victims hold. Nobody is displaced for what is only lent.
type stage struct {
	c    *Class
	r    gpu.Request
	f    *gpu.Free // nil: free says all
	free roost.Resources
	spot gpu.Placement
}

func (p *plan) newStage(c *Class, at int) stage {
	s := stage{c: c, r: gpu.Request{Resources: c.Resources, Class: c.App}}
	m := p.Machines[at]
	if m.units == nil || p.units[at] == nil && !m.split {
		s.free = p.free[at]
		if c.App == gpu.Stream {
			s.free.CPU = p.stream[at]
		}
		return s
	}
	s.f = p.units[at].Clone()
	for i := range s.f.Len() {
		q := s.f.Queue(i)
		s.f.SetQueue(i, gpu.Queue{RunLimit: q.RunLimit, Running: q.Running})
	}
	return s
}

func (s *stage) give(p gpu.Placement) { s.move(p, 1) }
func (s *stage) take(p gpu.Placement) { s.move(p, -1) }

func (s *stage) move(p gpu.Placement, by int) {
	if s.f == nil {
		s.free.Disk += roost.Bytes(by) * p.Disk
		for _, part := range p.Parts {
			if s.free.Memory += roost.Bytes(by) * part.Memory; p.Class == s.c.App {
				s.free.CPU += roost.MilliCPU(by) * part.CPU
			}
		}
		return
	}
	if by > 0 {
		s.f.Give(p)
	} else {
		s.f.Take(p)
	}
	for _, part := range p.Parts {
		if q := s.f.Queue(part.Unit); p.Class == gpu.Batch {
			q.Running -= by
			s.f.SetQueue(part.Unit, q)
		}
	}
}

// takeAll takes what was promised of the machine; false if it is not there, as when the ad knows better by now.
func (s *stage) takeAll(all []gpu.Placement) bool {
	for _, p := range all {
		if s.f != nil && !s.f.Fits(p) {
			return false
		}
		s.take(p)
	}
	return true
}

// fits reports whether a unit fits now; s.spot says where.
func (s *stage) fits() bool {
	if s.f == nil {
		return s.c.Resources.GPUs == 0 && s.c.Resources.Fits(s.free)
	}
	return s.f.Find(s.r, gpu.Anywhere, &s.spot)
}
