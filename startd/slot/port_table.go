package slot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// The ports of a machine. A number has one holder, a claim, from the decision on the
// claim until it is gone: so a task that is started again on its claim has the ports of
// the task before.
//
// To give a number that falls free to the next who asks is not enough. Names of services
// are a moment behind the truth, and a client that follows an old one must find nobody
// rather than a stranger. So a number stays in quarantine for a while, in which only the
// job that had it may have it again.
//
//	free ──give──▶ held ──claim gone──▶ quarantined ──time, or the same job──▶ free, held
//
// Invariants: each number has at most one holder, and is not held while it is in
// quarantine for another job.

// PortSettings are what a machine gives of its ports. Zero fields have the defaults.
type PortSettings struct {
	First, Last uint16 // the range of ports without a number of their own
	Quarantine  time.Duration
}

// nameBound is how old the names of services may be, and defaultQuarantine how long
// therefore no other job gets a port that was freed.
const (
	nameBound         = 15 * time.Second
	defaultQuarantine = 3 * nameBound
)

// Bounds on the ports of a machine.
const (
	maxStaticPorts  = 256 // held at once: the machine's ad lists them
	maxFreedPorts   = 4096
	maxFailedProbes = 256 // for one request
	maxForeignPorts = 256 // that the machine's ad lists
)

// foreignTime is how long the machine's ad says of a port that a program has it which is
// no task. Then the next request finds out.
const foreignTime = time.Minute

func (s PortSettings) withDefaults() PortSettings {
	s.First, s.Last = cmp.Or(s.First, roost.FirstDynamicPort), cmp.Or(s.Last, roost.LastDynamicPort)
	s.Quarantine = cmp.Or(s.Quarantine, defaultQuarantine)
	return s
}

func (s PortSettings) isDynamic(number uint16) bool { return number >= s.First && number <= s.Last }

// FreedPort is a port in quarantine.
type FreedPort struct {
	Number uint16
	Job    string // that may have it again
	Until  roost.BootTime
}

// PortTable holds the books of the ports of one machine.
type PortTable struct {
	portQuarantine
	settings PortSettings
	holders  map[uint16]ClaimID
	// numbers that something else than a task was found to have, and until when that is
	// said; only those that a request named
	foreign map[uint16]roost.BootTime
	leaving []FreedPort // that fell free since the last call that had the time
	next    uint16      // where the search for a dynamic port goes on
	busy    uint64      // ports that something else on the machine was found to have
	version uint64      // of the quarantine
}

func newPortTable(settings PortSettings) *PortTable {
	settings = settings.withDefaults()
	return &PortTable{portQuarantine: newPortQuarantine(), settings: settings, holders: make(map[uint16]ClaimID),
		foreign: make(map[uint16]roost.BootTime), next: settings.First}
}

// Version rises whenever a port enters or leaves quarantine.
func (t *PortTable) Version() uint64 { return t.version }

// PortCounts are sums over the ports of a machine.
type PortCounts struct {
	Held, Quarantined int
	Busy              uint64 // that something else was found to have, since the start
}

// Counts returns the sums as they are.
func (t *PortTable) Counts() PortCounts { return PortCounts{len(t.holders), len(t.freed), t.busy} }

// RestoreFreed takes in ports that were in quarantine when the previous startd ended.
func (t *PortTable) RestoreFreed(now roost.BootTime, list []FreedPort) {
	list = slices.Clone(list) // in the order in which they end
	slices.SortStableFunc(list, func(a, b FreedPort) int { return cmp.Compare(a.Until, b.Until) })
	for _, f := range list {
		if _, held := t.holders[f.Number]; !held && f.Number != 0 && len(t.freed) < maxFreedPorts {
			f.Until = min(f.Until, now+t.settings.Quarantine)
			t.addFreed(f)
			t.version++
		}
	}
}

// updateQuarantines puts the ports that fell free into quarantine, and frees those whose
// time there is over. It reports whether there were any.
func (t *PortTable) updateQuarantines(now roost.BootTime) (changed bool) {
	for _, f := range t.leaving {
		if _, held := t.holders[f.Number]; !held && len(t.freed) < maxFreedPorts {
			f.Until = now + t.settings.Quarantine
			t.addFreed(f)
			t.version++
			changed = true
		}
	}
	t.leaving = t.leaving[:0]
	if ended := t.endDue(now); ended > 0 {
		t.version += ended
		changed = true
	}
	for number, until := range t.foreign {
		if now >= until {
			delete(t.foreign, number)
			changed = true
		}
	}
	return changed
}

// portSearch finds the ports of one request. isFree reports whether nothing else on the
// machine has the port.
type portSearch struct {
	*PortTable
	now    roost.BootTime
	job    string
	isFree func(roost.ClaimPort) bool
	failed int // probes
	// whether one found a port that a request named in other hands, or no longer in them
	foreignChanged bool
}

// find returns the ports for a request. It holds nothing yet.
func (s *portSearch) find(wanted []roost.PortRequest) ([]roost.ClaimPort, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	if err := roost.CheckPorts(wanted); err != nil {
		return nil, err
	}
	if s.job == "" {
		return nil, fmt.Errorf("ports: %w: the request does not say for which job they are", roost.Invalid)
	}
	list := make([]roost.ClaimPort, 0, len(wanted))
	for _, p := range wanted {
		given := roost.ClaimPort{PortRequest: p, Number: p.Static}
		var err error
		if p.Static != 0 {
			err = s.checkStatic(given)
		} else {
			given, err = s.findDynamic(p, list)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, given)
	}
	return list, nil
}

// checkStatic returns why a port with a number of its own cannot be had; nil if it can.
func (s *portSearch) checkStatic(p roost.ClaimPort) error {
	f, freed := s.freed[p.Number]
	switch _, held := s.holders[p.Number]; {
	case s.settings.isDynamic(p.Number):
		return fmt.Errorf("port %d: %w: this machine gives the numbers from %d to %d to ports that name none", p.Number,
			roost.Conflict, s.settings.First, s.settings.Last)
	case held:
		return fmt.Errorf("port %d: %w: another task on this machine has it", p.Number, roost.Conflict)
	case freed && !s.mayReuse(f):
		return fmt.Errorf("port %d: %w: another job had it, and clients may look for that for %v yet", p.Number,
			roost.Conflict, (f.Until - s.now).Round(time.Second))
	case s.staticPorts() >= maxStaticPorts:
		return fmt.Errorf("port %d: %w: %d such ports of this machine are taken, which is the most", p.Number,
			roost.Exhausted, maxStaticPorts)
	case !s.probe(p):
		return foreignPortError(p)
	}
	return nil
}

// foreignPortError is the error for a port that a program has which is no task.
func foreignPortError(p roost.ClaimPort) error {
	return fmt.Errorf("port %d: %w: something else on this machine has it; \"ss -tlnp sport = :%d\" there says what",
		p.Number, roost.Conflict, p.Number)
}

// mayReuse reports whether the job of the request may have a port in quarantine.
func (s *portSearch) mayReuse(f FreedPort) bool {
	return f.Job == s.job || s.now >= f.Until
}

// probe reports whether nothing else on the machine has a port.
func (s *portSearch) probe(p roost.ClaimPort) bool {
	_, known := s.foreign[p.Number]
	if s.isFree == nil || s.isFree(p) {
		delete(s.foreign, p.Number)
		s.foreignChanged = s.foreignChanged || known
		return true
	}
	if p.Static != 0 && (known || len(s.foreign) < maxForeignPorts) {
		s.foreign[p.Number] = s.now + foreignTime
		s.foreignChanged = s.foreignChanged || !known
	}
	s.busy++
	s.failed++
	return false
}

// findDynamic finds a free port of the range. It is one that the job had a moment ago,
// or the next in turn. The search does not begin at the lowest one, so that a number
// rests for as long as there are others.
func (s *portSearch) findDynamic(p roost.PortRequest, chosen []roost.ClaimPort) (roost.ClaimPort, error) {
	take := func(number uint16) (roost.ClaimPort, bool) {
		given := roost.ClaimPort{PortRequest: p, Number: number}
		_, held := s.holders[number]
		f, freed := s.freed[number]
		if held || freed && !s.mayReuse(f) ||
			slices.ContainsFunc(chosen, func(o roost.ClaimPort) bool { return o.Number == number }) {
			return given, false
		}
		return given, s.probe(given)
	}
	for _, number := range s.byJob[s.job] {
		if s.settings.isDynamic(number) {
			if given, ok := take(number); ok {
				return given, nil
			}
		}
	}
	for range int(s.settings.Last) - int(s.settings.First) + 1 {
		number := s.next
		if s.next++; s.next > s.settings.Last || s.next == 0 {
			s.next = s.settings.First
		}
		if given, ok := take(number); ok {
			return given, nil
		}
		if s.failed >= maxFailedProbes {
			break
		}
	}
	return roost.ClaimPort{}, fmt.Errorf("port %s: %w: no number from %d to %d is free on this machine", p.Name,
		roost.Exhausted, s.settings.First, s.settings.Last)
}

func (t *PortTable) staticPorts() (n int) {
	for number := range t.holders {
		if !t.settings.isDynamic(number) {
			n++
		}
	}
	return n
}

// hold gives ports to a claim.
func (t *PortTable) hold(id ClaimID, ports []roost.ClaimPort) {
	for _, p := range ports {
		if t.removeFreed(p.Number) {
			t.version++
		}
		t.holders[p.Number] = id
	}
}

// release takes the ports of a claim from it. They go into quarantine with the next call
// that has the time.
func (t *PortTable) release(id ClaimID, job string, ports []roost.ClaimPort) {
	for _, p := range ports {
		if t.holders[p.Number] == id {
			delete(t.holders, p.Number)
			t.leaving = append(t.leaving, FreedPort{Number: p.Number, Job: job})
		}
	}
}

// describe writes into the machine's ad which ports with numbers of their own are taken.
// So nobody is sent here for one of them in vain.
func (t *PortTable) describe(ad *classad.Ad) {
	all := slices.Collect(maps.Keys(t.foreign))
	for number := range t.holders {
		if _, there := t.foreign[number]; !there && !t.settings.isDynamic(number) {
			all = append(all, number)
		}
	}
	var taken, foreign, quarantined []classad.Value
	for _, number := range slices.Sorted(slices.Values(all)) {
		taken = append(taken, classad.IntValue(int64(number)))
		if _, there := t.foreign[number]; there {
			foreign = append(foreign, classad.IntValue(int64(number)))
		}
	}
	for _, f := range t.Freed() {
		if !t.settings.isDynamic(f.Number) && len(quarantined) < maxStaticPorts {
			one := classad.New()
			one.SetInt(roost.AttrPortStatic, int64(f.Number))
			one.SetString(roost.AttrJob, f.Job)
			quarantined = append(quarantined, classad.AdOf(one))
		}
	}
	if s := t.settings; s.First != roost.FirstDynamicPort || s.Last != roost.LastDynamicPort {
		ad.SetValue(roost.AttrPortRange, classad.ListValue(classad.IntValue(int64(s.First)),
			classad.IntValue(int64(s.Last))))
	}
	if len(taken) > 0 {
		ad.SetValue(roost.AttrPortsTaken, classad.ListValue(taken...))
	}
	if len(foreign) > 0 {
		ad.SetValue(roost.AttrPortsForeign, classad.ListValue(foreign...))
	}
	if len(quarantined) > 0 {
		ad.SetValue(roost.AttrPortsQuarantined, classad.ListValue(quarantined...))
	}
}
