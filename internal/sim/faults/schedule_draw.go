package faults

import (
	"slices"
	"time"
)

// NodeNames lists the names of a pool's nodes by type.
type NodeNames struct{ Schedds, Machines, Managers []string }

// all lists the names of all nodes.
func (n *NodeNames) all() []string { return slices.Concat(n.Managers, n.Schedds, n.Machines) }

// DrawLimits bounds what DrawSchedule draws.
type DrawLimits struct {
	Nodes         NodeNames
	Failpoints    func(node string) []string // failpoints at which a daemon can be made to crash
	Kinds         []InjectionKind            // kinds that may be drawn; empty: all
	From          time.Duration              // no fault begins earlier
	Until         time.Duration              // all faults are over by then
	MaxIncidents  int                        // maximum of incidents; an incident may be several faults
	Disks         []string                   // nodes whose disks can be full, slow or torn; empty: all
	OwnedMachines []string                   // machines with owners who come; empty: all
}

// The longest durations that are drawn. Faults longer than a lease have other effects
// than shorter ones, so the simulated leases should be shorter than these.
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
	active := drawActiveKinds(r, possible)
	d := scheduleDraw{SeededRand: r, DrawLimits: w}
	if r.OneIn(3) && len(w.Nodes.Schedds) > 0 && len(w.Nodes.Machines) > 0 {
		d.pair = []string{PickOne(r, w.Nodes.Schedds), PickOne(r, w.Nodes.Machines)}
	}
	together, most := r.OneIn(2), w.MaxIncidents
	if len(active) == 0 {
		most = 0
	}
	for range r.Skewed(min(1, most), most) {
		if d.clustered = together && len(all) > 0 && !r.OneIn(3); d.clustered {
			d.lastFault = PickOne(r, all)
		}
		all = append(all, d.drawIncident(PickOne(r, active))...)
	}
	if slices.Contains(active, Crash) && slices.Contains(active, Partition) && len(w.Nodes.Schedds) > 0 &&
		len(w.Nodes.Machines) > 0 && r.OneIn(2) {
		all = append(all, d.drawUnreachedMachine()...)
	}
	if slices.Contains(active, Pause) && slices.Contains(active, Partition) && len(w.Nodes.Schedds) > 0 &&
		len(w.Nodes.Machines) > 0 {
		for range r.Intn(4) {
			all = append(all, d.drawLateReads()...)
		}
	}
	if come && (len(possible) == 0 || owners.OneIn(2)) {
		d.SeededRand = owners
		all = append(all, d.drawOwnerVisits(slices.Contains(active, Crash))...)
	}
	if blind && (len(possible) == 0 || guards.OneIn(2)) {
		d.SeededRand = guards
		all = append(all, d.drawGuardDeaths(come, slices.Contains(active, Crash))...)
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

// drawActiveKinds draws which of the possible kinds a schedule has, at least one.
func drawActiveKinds(r *SeededRand, possible []InjectionKind) (active []InjectionKind) {
	for _, k := range possible {
		if r.OneIn(2) {
			active = append(active, k)
		}
	}
	if len(active) == 0 && len(possible) > 0 {
		active = []InjectionKind{PickOne(r, possible)}
	}
	return active
}

type scheduleDraw struct {
	*SeededRand
	DrawLimits
	pair []string // the two nodes that most faults affect; empty: any nodes
	// the next fault is near lastFault in time, and often on the same node: faults that
	// harm only together seldom coincide by chance
	clustered bool
	lastFault Fault // an earlier fault
}

// nearTime is the longest delay between a clustered fault and the one that it is near.
const nearTime = 15 * time.Second

// drawTime draws the time of a fault.
func (d *scheduleDraw) drawTime() time.Duration {
	if d.clustered {
		return min(d.lastFault.At+d.Duration(nearTime), d.Until)
	}
	return d.From + d.Duration(max(d.Until-d.From, time.Millisecond))
}

// drawNode draws one of the given nodes.
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

// drawIncident draws an incident of a kind: one or more related faults.
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

// drawUnreachedMachine draws a restart of a schedd that then cannot reach a machine. The
// machine stays unreachable for about the length of its leases. The schedd has lost the
// remaining times of these leases, and must not declare live tasks dead.
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

// drawLateReads draws a pause of a machine's daemon during which a schedd sends messages.
// The daemon reads them when the schedd has long been unable to reach it.
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

// ownerStream seeds a separate stream for owners. What else a seed draws is the same with
// and without owners.
const ownerStream = 0x6f776e6572

// drawOwnerVisits draws visits of owners, one after the other. If die is set, some visits
// are beside a dead daemon.
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

// drawVisitWithoutDaemon draws a visit during which the machine's daemon is dead and
// restarts. The daemon must not resume what others have frozen meanwhile.
func (d *scheduleDraw) drawVisitWithoutDaemon() (all []Fault) {
	d.clustered = false
	crash := Fault{At: d.drawTime(), Duration: d.SkewedDuration(10*time.Millisecond, maxDowntime/8), Kind: Crash,
		Node: d.drawOwnedMachine()}
	visit := Fault{At: crash.At + d.Duration(crash.Duration),
		Duration: crash.Duration + d.SkewedDuration(time.Second, maxDowntime/2), Kind: OwnerComes, Node: crash.Node}
	return []Fault{crash, visit}
}

// guardStream seeds a separate stream for guards, as ownerStream does for owners.
const guardStream = 0x6775617264

// drawGuardDeaths draws deaths of guards. Some come alone, some near the arrival or
// departure of an owner, and some near the death of the daemon beside the guard.
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

// takeoverStream seeds a separate stream for address takeovers, as ownerStream does for
// owners.
const takeoverStream = 0x74616b6572

// drawAddressTakeover draws that a machine is cut off and another one answers at its
// address. It lasts about as long as leases do.
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

// bitFlipStream seeds a separate stream for flipped bits, as ownerStream does for owners.
const bitFlipStream = 0x666c6970

// drawBitFlips draws damage to the log of a central manager that is down. It is always
// the same manager: if a majority has damage, committed entries are lost.
func (d *scheduleDraw) drawBitFlips() (all []Fault) {
	d.clustered = false
	name := PickOne(d.SeededRand, d.Nodes.Managers)
	for range d.Skewed(1, 3) {
		all = append(all, Fault{At: d.drawTime(), Duration: d.SkewedDuration(10*time.Millisecond, maxDowntime),
			Kind: BitFlip, Node: name, N: d.Between(1, 1<<20)})
	}
	return all
}

// logLossStream seeds a separate stream for damage to schedds' logs, as ownerStream does
// for owners.
const logLossStream = 0x6c6f7373

// drawLogLoss draws damage to the log of a schedd that is down.
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

// drawClockStep draws how far a wall clock is set forward or back.
func (d *scheduleDraw) drawClockStep() time.Duration {
	by := d.SkewedDuration(time.Second, maxClockStep)
	if d.OneIn(2) {
		return -by
	}
	return by
}

// drawNetworkFault draws a fault between nodes. It affects one pair, all pairs of one
// node, or two halves of the pool, in one direction or both, once or repeatedly. These
// are the complete, partial and simplex partitions of Alquraan et al. ("An Analysis of
// Network-Partitioning Failures in Cloud Systems", OSDI 2018), who found that most
// harmful ones cut off one node.
func (d *scheduleDraw) drawNetworkFault(f Fault) (all []Fault) {
	f.Duration = d.SkewedDuration(10*time.Millisecond, maxCut)
	if d.OneIn(2) {
		f.Duration = d.SkewedDuration(maxCut/8, maxCut) // about the length of leases
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

// drawPairs draws the pairs of nodes that a network fault affects.
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
	case 1: // one node and all others
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
