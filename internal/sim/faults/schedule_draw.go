package faults

import (
	"slices"
	"time"
)

// NodeNames are the names of a pool's nodes, by what they are.
type NodeNames struct{ Schedds, Machines, Managers []string }

// all lists all of them.
func (n *NodeNames) all() []string { return slices.Concat(n.Managers, n.Schedds, n.Machines) }

// DrawLimits bounds what is drawn.
type DrawLimits struct {
	Nodes         NodeNames
	Failpoints    func(node string) []string // at which a daemon can be made to die
	Kinds         []InjectionKind            // of those that may be drawn; none: all
	From          time.Duration              // no fault before
	Until         time.Duration              // all are over by then
	MaxIncidents  int                        // so many incidents; one may be more than one fault
	Disks         []string                   // whose disks can be full, slow, or torn; none: all nodes'
	OwnedMachines []string                   // machines that have owners who come; none: all
}

// The longest times that are drawn. Beyond a lease something else happens than within, so
// leases of what is run should be shorter than the longest.
const (
	maxDowntime  = 2 * time.Minute
	maxCut       = 3 * time.Minute
	maxClockStep = 10 * 365 * 24 * time.Hour
)

// DrawSchedule draws a schedule, in order of time.
func DrawSchedule(r *SeededRand, w DrawLimits) (all []Fault) {
	possible := w.Kinds
	if len(possible) == 0 {
		possible = AllKinds()
	}
	owners, come := r.splitAside(ownerStream), slices.Contains(possible, OwnerComes) && len(w.Nodes.Machines) > 0
	guards, blind := r.splitAside(guardStream), slices.Contains(possible, GuardDies) && len(w.Nodes.Machines) > 0
	possible = slices.DeleteFunc(slices.Clone(possible), func(k InjectionKind) bool {
		return k == OwnerComes || k == GuardDies || k == TakeAddress || k == BitFlip
	})
	takers, taken := r.splitAside(takeoverStream), slices.Contains(w.Kinds, TakeAddress) || len(w.Kinds) == 0
	losses := r.splitAside(logLossStream)
	flips, flipped := r.splitAside(bitFlipStream), slices.Contains(w.Kinds, BitFlip) || len(w.Kinds) == 0
	var today []InjectionKind
	for _, k := range possible {
		if r.OneIn(2) {
			today = append(today, k)
		}
	}
	if len(today) == 0 && len(possible) > 0 {
		today = []InjectionKind{PickOne(r, possible)}
	}
	d := scheduleDraw{SeededRand: r, DrawLimits: w}
	if r.OneIn(3) && len(w.Nodes.Schedds) > 0 && len(w.Nodes.Machines) > 0 {
		d.pair = []string{PickOne(r, w.Nodes.Schedds), PickOne(r, w.Nodes.Machines)}
	}
	together, most := r.OneIn(2), w.MaxIncidents
	if len(today) == 0 {
		most = 0
	}
	for range r.Skewed(min(1, most), most) {
		if d.clustered = together && len(all) > 0 && !r.OneIn(3); d.clustered {
			d.lastFault = PickOne(r, all)
		}
		all = append(all, d.drawIncident(PickOne(r, today))...)
	}
	if slices.Contains(today, Crash) && slices.Contains(today, Partition) && len(w.Nodes.Schedds) > 0 &&
		len(w.Nodes.Machines) > 0 && r.OneIn(2) {
		all = append(all, d.drawUnreachedMachine()...)
	}
	if slices.Contains(today, Pause) && slices.Contains(today, Partition) && len(w.Nodes.Schedds) > 0 &&
		len(w.Nodes.Machines) > 0 {
		for range r.Intn(4) {
			all = append(all, d.drawLateReads()...)
		}
	}
	if come && (len(possible) == 0 || owners.OneIn(2)) {
		d.SeededRand = owners
		all = append(all, d.drawOwnerVisits(slices.Contains(today, Crash))...)
	}
	if blind && (len(possible) == 0 || guards.OneIn(2)) {
		d.SeededRand = guards
		all = append(all, d.drawGuardDeaths(come, slices.Contains(today, Crash))...)
	}
	if taken && len(w.Nodes.Machines) > 1 && (len(possible) == 0 || takers.OneIn(4)) {
		d.SeededRand = takers
		all = append(all, d.drawAddressTakeover()...)
	}
	if flipped && len(w.Nodes.Managers) > 1 && (len(possible) == 0 || flips.OneIn(4)) {
		d.SeededRand = flips
		all = append(all, d.drawBitFlips()...)
	}
	if flipped && len(w.Nodes.Schedds) > 0 && (len(possible) == 0 || losses.OneIn(4)) {
		d.SeededRand = losses
		all = append(all, d.drawLogLoss()...)
	}
	for i := range all {
		all[i].At = min(all[i].At, w.Until)
		all[i].Duration = min(all[i].Duration, w.Until-all[i].At)
	}
	SortByTime(all)
	return all
}

type scheduleDraw struct {
	*SeededRand
	DrawLimits
	pair []string // the two between which it happens; none: anywhere
	// it is to happen soon after the last, and often to the same node: what does harm
	// together seldom meets by itself
	clustered bool
	lastFault Fault // one before
}

// nearTime is how soon after another fault one happens that is to be near it.
const nearTime = 15 * time.Second

// drawTime draws an instant.
func (d *scheduleDraw) drawTime() time.Duration {
	if d.clustered {
		return min(d.lastFault.At+d.Duration(nearTime), d.Until)
	}
	return d.From + d.Duration(max(d.Until-d.From, time.Millisecond))
}

// drawNode draws one of some nodes.
func (d *scheduleDraw) drawNode(of []string) string {
	if len(d.pair) > 0 && !d.OneIn(4) {
		if name := PickOne(d.SeededRand, d.pair); slices.Contains(of, name) {
			return name
		}
	}
	if d.clustered && !d.OneIn(3) {
		if d.lastFault.Peer != "" && slices.Contains(of, d.lastFault.Peer) && d.OneIn(2) {
			return d.lastFault.Peer
		}
		if slices.Contains(of, d.lastFault.Node) {
			return d.lastFault.Node
		}
	}
	return PickOne(d.SeededRand, of)
}

// drawIncident draws what happens at one place, of a kind.
func (d *scheduleDraw) drawIncident(k InjectionKind) []Fault {
	f := Fault{At: d.drawTime(), Kind: k, Node: d.drawNode(d.Nodes.all())}
	away := func() { f.Duration = d.SkewedDuration(10*time.Millisecond, maxDowntime) }
	switch k {
	case Crash:
		away()
		if points := d.Failpoints(f.Node); len(points) > 0 && !d.OneIn(3) {
			f.Failpoint, f.N = PickOne(d.SeededRand, points), d.Skewed(1, 20)
		}
	case Reboot, Suspend:
		f.Node = d.drawNode(d.Nodes.Machines)
		away()
	case OwnerComes, GuardDies:
		f.Node = d.drawOwnedMachine()
		away()
	case Pause:
		away()
	case TornWrite:
		f.Node = d.drawDiskFault()
		crash := Fault{At: f.At, Duration: d.SkewedDuration(10*time.Millisecond, maxDowntime), Kind: Crash,
			Node: f.Node}
		if points := d.Failpoints(f.Node); len(points) > 0 && d.OneIn(2) {
			crash.Failpoint, crash.N = PickOne(d.SeededRand, points), d.Skewed(1, 20)
		}
		return []Fault{f, crash}
	case SlowDisk:
		f.Node, f.Amount = d.drawDiskFault(), d.SkewedDuration(10*time.Millisecond, 5*time.Second)
		away()
	case FullDisk:
		f.Node = d.drawDiskFault()
		away()
	case SlowNode:
		f.Amount = d.SkewedDuration(time.Millisecond, time.Second)
		away()
	case ClockStep:
		f.Amount = d.drawClockStep()
	default:
		return d.drawNetworkFault(f)
	}
	return []Fault{f}
}

// drawUnreachedMachine draws that a schedd starts again and does not reach a machine
// then, for about as long as its leases are: what it knew of them is gone, and it must
// not take for dead what is not.
func (d *scheduleDraw) drawUnreachedMachine() (all []Fault) {
	d.clustered = false
	f := Fault{At: d.drawTime(), Duration: d.SkewedDuration(10*time.Millisecond, 5*time.Second), Kind: Crash,
		Node: PickOne(d.SeededRand, d.Nodes.Schedds)}
	cut := Fault{At: f.At, Duration: f.Duration + d.SkewedDuration(maxCut/16, maxCut), Kind: Partition, Node: f.Node,
		Peer: PickOne(d.SeededRand, d.Nodes.Machines)}
	back := cut
	back.Node, back.Peer = cut.Peer, cut.Node
	return []Fault{f, cut, back}
}

// drawLateReads draws that a machine's daemon stands still while it is told things, and
// reads them when whoever said them has long been unable to reach it.
func (d *scheduleDraw) drawLateReads() (all []Fault) {
	d.clustered = false
	pause := Fault{At: d.drawTime(), Duration: d.SkewedDuration(maxDowntime/12, maxDowntime/3), Kind: Pause,
		Node: PickOne(d.SeededRand, d.Nodes.Machines)}
	parted := Fault{At: pause.At + d.Duration(10*time.Second), Kind: BreakSessions,
		Node: PickOne(d.SeededRand, d.Nodes.Schedds), Peer: pause.Node}
	cut := parted
	cut.At, cut.Duration, cut.Kind = parted.At+d.Duration(time.Second), d.SkewedDuration(maxCut/8, maxCut), Partition
	back := cut
	back.Node, back.Peer = cut.Peer, cut.Node
	return []Fault{pause, parted, cut, back}
}

// ownerStream makes a source of its own for owners: what else a seed draws is the same
// whether they come or not.
const ownerStream = 0x6f776e6572

// drawOwnerVisits draws that owners come, one after the other; and where daemons die,
// also that they do beside a dead one.
func (d *scheduleDraw) drawOwnerVisits(die bool) (all []Fault) {
	for range d.Skewed(1, d.MaxIncidents/2) {
		d.clustered = false
		all = append(all, d.drawIncident(OwnerComes)...)
	}
	if die {
		for range d.Intn(4) {
			all = append(all, d.drawVisitWithoutDaemon()...)
		}
	}
	return all
}

// drawVisitWithoutDaemon draws that a machine's daemon is dead when its owner comes, and
// starts again while he is there: what others have stopped it must not let go on.
func (d *scheduleDraw) drawVisitWithoutDaemon() (all []Fault) {
	d.clustered = false
	crash := Fault{At: d.drawTime(), Duration: d.SkewedDuration(10*time.Millisecond, maxDowntime/8), Kind: Crash,
		Node: d.drawOwnedMachine()}
	visit := Fault{At: crash.At + d.Duration(crash.Duration),
		Duration: crash.Duration + d.SkewedDuration(time.Second, maxDowntime/2), Kind: OwnerComes, Node: crash.Node}
	return []Fault{crash, visit}
}

// guardStream makes a source of its own for guards, likewise.
const guardStream = 0x6775617264

// drawGuardDeaths draws that guards die: by themselves, about when the owner comes or
// goes, and about when the daemon beside them dies, too.
func (d *scheduleDraw) drawGuardDeaths(come, die bool) (all []Fault) {
	for range d.Skewed(1, d.MaxIncidents/4) {
		d.clustered = false
		guard := d.drawIncident(GuardDies)[0]
		all = append(all, guard)
		about := func() time.Duration {
			return max(guard.At-5*time.Second+d.Duration(guard.Duration+10*time.Second), d.From)
		}
		if come && d.OneIn(2) {
			all = append(all, Fault{At: about(), Duration: d.SkewedDuration(10*time.Millisecond, maxDowntime),
				Kind: OwnerComes, Node: guard.Node})
		}
		if die && d.OneIn(2) {
			all = append(all, Fault{At: about(), Duration: d.SkewedDuration(10*time.Millisecond, maxDowntime/8),
				Kind: Crash, Node: guard.Node})
		}
	}
	return all
}

// takeoverStream makes a source of its own for machines at others' addresses, likewise.
const takeoverStream = 0x74616b6572

// drawAddressTakeover draws that a machine is cut off from everybody and another one
// answers at its address, for about as long as leases are.
func (d *scheduleDraw) drawAddressTakeover() (all []Fault) {
	for range d.Skewed(1, 3) {
		d.clustered = false
		f := Fault{At: d.drawTime(), Duration: d.SkewedDuration(maxCut/8, maxCut), Kind: TakeAddress,
			Node: PickOne(d.SeededRand, d.Nodes.Machines)}
		for f.Peer = f.Node; f.Peer == f.Node; {
			f.Peer = PickOne(d.SeededRand, d.Nodes.Machines)
		}
		all = append(all, f)
	}
	return all
}

// bitFlipStream makes a source of its own for flipped bits, likewise.
const bitFlipStream = 0x666c6970

// drawBitFlips draws that the log of a central manager is damaged while it is down. It is
// always the same one's: where most have damage nobody knows what was said.
func (d *scheduleDraw) drawBitFlips() (all []Fault) {
	d.clustered = false
	name := PickOne(d.SeededRand, d.Nodes.Managers)
	for range d.Skewed(1, 3) {
		all = append(all, Fault{At: d.drawTime(), Duration: d.SkewedDuration(10*time.Millisecond, maxDowntime),
			Kind: BitFlip, Node: name, N: d.Between(1, 1<<20)})
	}
	return all
}

// logLossStream makes a source of its own for damage to the logs of schedds, likewise.
const logLossStream = 0x6c6f7373

// drawLogLoss draws that the log of a schedd is damaged while it is down.
func (d *scheduleDraw) drawLogLoss() (all []Fault) {
	d.clustered = false
	for range d.Skewed(1, 3) {
		all = append(all, Fault{
			At: d.drawTime(), Duration: d.SkewedDuration(10*time.Millisecond, maxDowntime), Kind: BitFlip,
			Node: PickOne(d.SeededRand, d.Nodes.Schedds), N: d.Between(1, 1<<20),
		})
	}
	return all
}

func (d *scheduleDraw) drawDiskFault() string {
	if len(d.Disks) > 0 {
		return d.drawNode(d.Disks)
	}
	return d.drawNode(d.Nodes.all())
}

func (d *scheduleDraw) drawOwnedMachine() string {
	if len(d.OwnedMachines) > 0 {
		return d.drawNode(d.OwnedMachines)
	}
	return d.drawNode(d.Nodes.Machines)
}

// drawClockStep draws by how much a wall clock is put forward or back.
func (d *scheduleDraw) drawClockStep() time.Duration {
	by := d.SkewedDuration(time.Second, maxClockStep)
	if d.OneIn(2) {
		return -by
	}
	return by
}

// drawNetworkFault draws what happens between nodes: to one pair, to all pairs of one
// node, or between two halves; in one direction or both; once, or again and again
// (Alquraan et al., "An Analysis of Network-Partitioning Failures in Cloud Systems", OSDI
// 2018: complete, partial and simplex partitions, and most that do harm cut off one
// node).
func (d *scheduleDraw) drawNetworkFault(f Fault) (all []Fault) {
	f.Duration = d.SkewedDuration(10*time.Millisecond, maxCut)
	if d.OneIn(2) {
		f.Duration = d.SkewedDuration(maxCut/8, maxCut) // about as long as leases are
	}
	if f.Kind == SlowLink {
		f.Amount = d.SkewedDuration(10*time.Millisecond, 5*time.Second)
	}
	if f.Kind == BreakSessions {
		f.Duration = 0
	}
	pairs := d.drawPairs()
	again := 1
	if d.OneIn(4) { // flapping
		again = d.Between(2, 6)
		f.Duration = min(f.Duration, 5*time.Second)
	}
	oneWay := d.OneIn(3)
	for range again {
		for _, p := range pairs {
			one := f
			one.Node, one.Peer = p[0], p[1]
			all = append(all, one)
			if one.Node, one.Peer = p[1], p[0]; !oneWay && f.Kind != BreakSessions {
				all = append(all, one)
			}
		}
		f.At += f.Duration + d.SkewedDuration(10*time.Millisecond, 5*time.Second)
		if f.At >= d.Until {
			break
		}
	}
	return all
}

// drawPairs draws between whom it happens.
func (d *scheduleDraw) drawPairs() (pairs [][2]string) {
	all := d.Nodes.all()
	if len(all) < 2 {
		return nil
	}
	if len(d.pair) > 0 && !d.OneIn(4) {
		return [][2]string{{d.pair[0], d.pair[1]}}
	}
	switch d.Intn(4) {
	case 0: // two halves
		here := d.Uint64()
		for i, a := range all {
			for k, b := range all[:i] {
				if (here>>uint(i)^here>>uint(k))&1 == 1 {
					pairs = append(pairs, [2]string{a, b})
				}
			}
		}
		return pairs
	case 1: // one and all others
		a := d.drawNode(all)
		for _, b := range all {
			if a != b {
				pairs = append(pairs, [2]string{a, b})
			}
		}
		return pairs
	}
	a := d.drawNode(all)
	for {
		if b := PickOne(d.SeededRand, all); a != b {
			return [][2]string{{a, b}}
		}
	}
}
