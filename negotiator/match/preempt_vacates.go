package match

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// pendingVacates is the state of a machine that claims are leaving or will leave.
type pendingVacates struct {
	// claims that were chosen as victims, in this plan or for grants that the ad does not
	// show yet
	chosen   map[uint64]bool
	freeing  []gpu.Placement // what becomes free when the claims have left
	assigned []gpu.Placement // the part of freeing that is granted
}

func (s *pendingVacates) consumeFreed(id uint64) bool { return s != nil && s.chosen[id] }

// mutableVacates returns the pendingVacates of a machine, which this cycle may change. It
// begins with the vacating claims of the ad.
func (p preemptionPlanner) mutableVacates(at int) *pendingVacates {
	if s := p.vacatesByMachine[at]; s != nil {
		return s
	}
	if p.vacatesByMachine == nil {
		p.vacatesByMachine = map[int]*pendingVacates{}
	}
	m, s := p.Machines[at], &pendingVacates{chosen: map[uint64]bool{}}
	p.vacatesByMachine[at] = s
	p.vacatingMachines = append(p.vacatingMachines, at)
	for i := range m.Claims {
		if c := &m.Claims[i]; c.Vacating {
			s.freeing = append(s.freeing, c.placement(m))
		}
	}
	for i := range m.Preemptors {
		s.assigned = append(s.assigned, m.Preemptors[i].placement(m))
	}
	return s
}

// reserveForPreemptor takes from a machine what a pending grant with victims needs beside
// what they hold, and records the rest.
func (p preemptionPlanner) reserveForPreemptor(at int, one *PendingGrant) {
	m, s := p.Machines[at], p.mutableVacates(at)
	var held []gpu.Placement
	for i := range m.Claims {
		c := &m.Claims[i]
		if slices.Contains(one.Victims, c.ID) {
			if s.chosen[c.ID] = true; !c.Vacating {
				held = append(held, c.placement(m))
			}
		}
	}
	now, later := gpu.CoverPlacement(p.placementAfterVacates(&RequestClass{Resources: one.Resources,
		AppClass: one.Class}, at, held), held)
	s.freeing, s.assigned = append(s.freeing, held...), append(s.assigned, later)
	p.takeFreeNow(at, now)
}

// placementAfterVacates returns where a unit of a class goes on a machine once some
// claims have left. The placement is empty if there is no room even then.
func (p preemptionPlanner) placementAfterVacates(c *RequestClass, at int, held []gpu.Placement) gpu.Placement {
	s := p.newDryRunMachine(c, at)
	for _, h := range held {
		s.addFree(h)
	}
	if !s.fitsNow() {
		return gpu.Placement{Class: c.AppClass}
	}
	if s.unitsFree != nil {
		return s.placement
	}
	return gpu.Placement{Class: c.AppClass, Disk: c.Resources.Disk, IO: c.Resources.IO,
		Parts: []gpu.UnitPart{{CPU: c.Resources.CPU, Memory: c.Resources.Memory}}}
}

// takeFreeNow takes a placement from what is free of a machine, and returns its
// resources.
func (p preemptionPlanner) takeFreeNow(at int, now gpu.Placement) (r roost.Resources) {
	r.Disk, r.IO = now.Disk, now.IO
	for _, part := range now.Parts {
		r.CPU, r.Memory = r.CPU+part.CPU, r.Memory+part.Memory
	}
	if p.units[at] == nil {
		p.subtractSums(at, r, now.Class)
		return r
	}
	if f := p.mutableUnits(at); f.CanTake(now) {
		f.TakePlacement(now)
	}
	p.updateSums(at)
	return r
}

// useVacatingRoom reports whether a unit finds room on a machine when the claims that are
// leaving have left. Then it waits for that and makes no more room.
func (p preemptionPlanner) useVacatingRoom(w *requestState) bool {
	p.listVacating()
	// A machine without room now has none until another claim is evicted there, and then
	// it is in the list once more.
	for h := &w.preemption; h.nextVacating < len(p.vacatingMachines); h.nextVacating++ {
		at := p.vacatingMachines[h.nextVacating]
		if !p.vacatesByMachine[at].freesMoreThanAssigned() {
			continue
		}
		if m := p.Machines[at]; m.drained || !p.unreserved(w, at) || w.Avoid[m.Name] != "" ||
			p.portConflict(w.Class, at) != 0 {
			continue
		}
		sc, st := p.vacatesByMachine[at], p.newDryRunMachine(w.Class, at)
		for _, g := range sc.freeing {
			st.addFree(g)
		}
		if !st.takePromised(sc.assigned) || !st.fitsNow() {
			continue
		}
		if _, ok := p.compiledQuery(w.Class).Match(p.Machines[at].row, &p.env); !ok {
			continue
		}
		if st.unitsFree != nil {
			sc.assigned = append(sc.assigned, clonePlacement(st.placement))
		} else {
			r := w.Class.Resources
			sc.assigned = append(sc.assigned, gpu.Placement{Class: w.Class.AppClass, Disk: r.Disk, IO: r.IO,
				Parts: []gpu.UnitPart{{CPU: r.CPU, Memory: r.Memory}}})
		}
		return true
	}
	return false
}

// listVacating lists the machines that claims are leaving already.
func (p preemptionPlanner) listVacating() {
	if p.vacatingListed {
		return
	}
	p.vacatingListed = true
	for at := range p.vacating {
		p.mutableVacates(int(at))
	}
	slices.Sort(p.vacatingMachines)
}

// freesMoreThanAssigned reports whether the leaving claims free CPU or devices that are
// not granted yet.
func (s *pendingVacates) freesMoreThanAssigned() bool {
	cpu, devices := roost.MilliCPU(0), 0
	for _, g := range s.freeing {
		devices += len(g.Shares)
		for _, part := range g.Parts {
			cpu += part.CPU
		}
	}
	for _, t := range s.assigned {
		devices -= len(t.Shares)
		for _, part := range t.Parts {
			cpu -= part.CPU
		}
	}
	return cpu > 0 || devices > 0
}

func clonePlacement(p gpu.Placement) gpu.Placement {
	p.Parts, p.Shares = slices.Clone(p.Parts), slices.Clone(p.Shares)
	return p
}

// dryRunMachine is a copy of a machine's free resources, to find the claims that must
// leave for a unit. Node queues do not count, because their tasks would get nothing of
// what the victims hold. No claim is evicted for reclaimed resources.
type dryRunMachine struct {
	class     *RequestClass
	resources gpu.DeviceRequest
	unitsFree *gpu.FreeResources // nil: free is exact
	free      roost.Resources
	placement gpu.Placement
}

func (p preemptionPlanner) newDryRunMachine(c *RequestClass, at int) dryRunMachine {
	s := dryRunMachine{class: c, resources: gpu.DeviceRequest{Resources: c.Resources, Class: c.AppClass}}
	m := p.Machines[at]
	if m.units == nil || p.units[at] == nil && !m.freeByUnit {
		s.free = p.free[at]
		if c.AppClass == gpu.StreamClass {
			s.free.CPU = p.streamFree[at]
		}
		return s
	}
	s.unitsFree = p.units[at].Clone()
	for i := range s.unitsFree.Len() {
		q := s.unitsFree.Queue(i)
		s.unitsFree.SetQueue(i, gpu.UnitQueue{RunLimit: q.RunLimit, Running: q.Running})
	}
	return s
}

func (s *dryRunMachine) addFree(p gpu.Placement)  { s.moveClaim(p, 1) }
func (s *dryRunMachine) takeFree(p gpu.Placement) { s.moveClaim(p, -1) }

func (s *dryRunMachine) moveClaim(p gpu.Placement, by int) {
	if s.unitsFree == nil {
		s.free.Disk += roost.Bytes(by) * p.Disk
		s.free.IO = s.free.IO.Add(p.IO.Times(by))
		for _, part := range p.Parts {
			if s.free.Memory += roost.Bytes(by) * part.Memory; p.Class == s.class.AppClass {
				s.free.CPU += roost.MilliCPU(by) * part.CPU
			}
		}
		return
	}
	if by > 0 {
		s.unitsFree.ReturnPlacement(p)
	} else {
		s.unitsFree.TakePlacement(p)
	}
	for _, part := range p.Parts {
		if q := s.unitsFree.Queue(part.Unit); p.Class == gpu.BatchClass {
			q.Running -= by
			s.unitsFree.SetQueue(part.Unit, q)
		}
	}
}

// takePromised takes granted placements from the machine. It returns false if they are
// not there, as when the ad is newer.
func (s *dryRunMachine) takePromised(all []gpu.Placement) bool {
	for _, p := range all {
		if s.unitsFree != nil && !s.unitsFree.CanTake(p) {
			return false
		}
		s.takeFree(p)
	}
	return true
}

// fitsNow reports whether a unit fits; s.placement is where.
func (s *dryRunMachine) fitsNow() bool {
	if s.unitsFree == nil {
		return s.class.Resources.GPUs == 0 && s.class.Resources.FitsIn(s.free)
	}
	return s.unitsFree.FindPlacement(s.resources, gpu.AnyUnit, &s.placement)
}
