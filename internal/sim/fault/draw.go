package fault

import (
	"slices"
	"time"
)

// Nodes are the names of a pool's nodes, by what they are.
type Nodes struct{ Schedds, Machines, Managers []string }

// all lists all of them.
func (n *Nodes) all() []string { return slices.Concat(n.Managers, n.Schedds, n.Machines) }

// Weather bounds what is drawn.
type Weather struct {
	Nodes  Nodes
	Points func(node string) []string // at which a daemon can be made to die
	Kinds  []Kind                     // of those that may be drawn; none: all
	From   time.Duration              // no fault before
	Calm   time.Duration              // all are over by then
	Most   int                        // so many incidents; one may be more than one fault
	Disks  []string                   // whose disks can be full, slow, or torn; none: all nodes'
	Desks  []string                   // machines that have owners who come; none: all
}

// The longest times that are drawn. Beyond a lease something else happens than within, so leases of what is run should be shorter than the longest.
const (
	longestAway = 2 * time.Minute
	longestCut  = 3 * time.Minute
	longestStep = 10 * 365 * 24 * time.Hour
)

// Draw draws a schedule, in order of time.
func Draw(r *Rand, w Weather) (all []Fault) {
	possible := w.Kinds
	if len(possible) == 0 {
		possible = Kinds()
	}
	owners, come := r.beside(ofOwners), slices.Contains(possible, OwnerComes) && len(w.Nodes.Machines) > 0
	guards, blind := r.beside(ofGuards), slices.Contains(possible, GuardDies) && len(w.Nodes.Machines) > 0
	possible = slices.DeleteFunc(slices.Clone(possible), func(k Kind) bool { return k == OwnerComes || k == GuardDies || k == TakesAddr || k == Flip })
	takers, taken := r.beside(ofTakers), slices.Contains(w.Kinds, TakesAddr) || len(w.Kinds) == 0
	losses := r.beside(ofLosses)
	flips, flipped := r.beside(ofFlips), slices.Contains(w.Kinds, Flip) || len(w.Kinds) == 0
	var today []Kind
	for _, k := range possible {
		if r.One(2) {
			today = append(today, k)
		}
	}
	if len(today) == 0 && len(possible) > 0 {
		today = []Kind{Pick(r, possible)}
	}
	d := drawing{Rand: r, Weather: w}
	if r.One(3) && len(w.Nodes.Schedds) > 0 && len(w.Nodes.Machines) > 0 {
		d.focus = []string{Pick(r, w.Nodes.Schedds), Pick(r, w.Nodes.Machines)}
	}
	together, most := r.One(2), w.Most
	if len(today) == 0 {
		most = 0
	}
	for range r.Few(min(1, most), most) {
		if d.near = together && len(all) > 0 && !r.One(3); d.near {
			d.last = Pick(r, all)
		}
		all = append(all, d.incident(Pick(r, today))...)
	}
	if slices.Contains(today, Crash) && slices.Contains(today, Cut) && len(w.Nodes.Schedds) > 0 && len(w.Nodes.Machines) > 0 && r.One(2) {
		all = append(all, d.forgetful()...)
	}
	if slices.Contains(today, Pause) && slices.Contains(today, Cut) && len(w.Nodes.Schedds) > 0 && len(w.Nodes.Machines) > 0 {
		for range r.Intn(4) {
			all = append(all, d.belated()...)
		}
	}
	if come && (len(possible) == 0 || owners.One(2)) {
		d.Rand = owners
		all = append(all, d.visits(slices.Contains(today, Crash))...)
	}
	if blind && (len(possible) == 0 || guards.One(2)) {
		d.Rand = guards
		all = append(all, d.blindness(come, slices.Contains(today, Crash))...)
	}
	if taken && len(w.Nodes.Machines) > 1 && (len(possible) == 0 || takers.One(4)) {
		d.Rand = takers
		all = append(all, d.takers()...)
	}
	if flipped && len(w.Nodes.Managers) > 1 && (len(possible) == 0 || flips.One(4)) {
		d.Rand = flips
		all = append(all, d.flips()...)
	}
	if flipped && len(w.Nodes.Schedds) > 0 && (len(possible) == 0 || losses.One(4)) {
		d.Rand = losses
		all = append(all, d.losses()...)
	}
	for i := range all {
		all[i].At = min(all[i].At, w.Calm)
		all[i].For = min(all[i].For, w.Calm-all[i].At)
	}
	Sort(all)
	return all
}

type drawing struct {
	*Rand
	Weather
	focus []string // the two between which it happens; none: anywhere
	near  bool     // it is to happen soon after the last, and often to the same node: what does harm together seldom meets by itself
	last  Fault    // one before
}

// soon is how soon after another fault one happens that is to be near it.
const soon = 15 * time.Second

// when draws an instant.
func (d *drawing) when() time.Duration {
	if d.near {
		return min(d.last.At+d.Time(soon), d.Calm)
	}
	return d.From + d.Time(max(d.Calm-d.From, time.Millisecond))
}

// one draws one of some nodes.
func (d *drawing) one(of []string) string {
	if len(d.focus) > 0 && !d.One(4) {
		if name := Pick(d.Rand, d.focus); slices.Contains(of, name) {
			return name
		}
	}
	if d.near && !d.One(3) {
		if d.last.Peer != "" && slices.Contains(of, d.last.Peer) && d.One(2) {
			return d.last.Peer
		}
		if slices.Contains(of, d.last.Node) {
			return d.last.Node
		}
	}
	return Pick(d.Rand, of)
}

// incident draws what happens at one place, of a kind.
func (d *drawing) incident(k Kind) []Fault {
	f := Fault{At: d.when(), Kind: k, Node: d.one(d.Nodes.all())}
	away := func() { f.For = d.Span(10*time.Millisecond, longestAway) }
	switch k {
	case Crash:
		away()
		if points := d.Points(f.Node); len(points) > 0 && !d.One(3) {
			f.Point, f.N = Pick(d.Rand, points), d.Few(1, 20)
		}
	case Reboot, Suspend:
		f.Node = d.one(d.Nodes.Machines)
		away()
	case OwnerComes, GuardDies:
		f.Node = d.desk()
		away()
	case Pause:
		away()
	case Tear:
		f.Node = d.disk()
		crash := Fault{At: f.At, For: d.Span(10*time.Millisecond, longestAway), Kind: Crash, Node: f.Node}
		if points := d.Points(f.Node); len(points) > 0 && d.One(2) {
			crash.Point, crash.N = Pick(d.Rand, points), d.Few(1, 20)
		}
		return []Fault{f, crash}
	case SlowDisk:
		f.Node, f.Amount = d.disk(), d.Span(10*time.Millisecond, 5*time.Second)
		away()
	case FullDisk:
		f.Node = d.disk()
		away()
	case SlowNode:
		f.Amount = d.Span(time.Millisecond, time.Second)
		away()
	case Step:
		f.Amount = d.step()
	default:
		return d.network(f)
	}
	return []Fault{f}
}

// forgetful draws that a schedd starts again and does not reach a machine then, for about as long as its leases are: what it knew of them is gone, and it must not
// take for dead what is not.
func (d *drawing) forgetful() (all []Fault) {
	d.near = false
	f := Fault{At: d.when(), For: d.Span(10*time.Millisecond, 5*time.Second), Kind: Crash, Node: Pick(d.Rand, d.Nodes.Schedds)}
	cut := Fault{At: f.At, For: f.For + d.Span(longestCut/16, longestCut), Kind: Cut, Node: f.Node, Peer: Pick(d.Rand, d.Nodes.Machines)}
	back := cut
	back.Node, back.Peer = cut.Peer, cut.Node
	return []Fault{f, cut, back}
}

// belated draws that a machine's daemon stands still while it is told things, and reads them when whoever said them has long been unable to reach it.
func (d *drawing) belated() (all []Fault) {
	d.near = false
	pause := Fault{At: d.when(), For: d.Span(longestAway/12, longestAway/3), Kind: Pause, Node: Pick(d.Rand, d.Nodes.Machines)}
	parted := Fault{At: pause.At + d.Time(10*time.Second), Kind: Break, Node: Pick(d.Rand, d.Nodes.Schedds), Peer: pause.Node}
	cut := parted
	cut.At, cut.For, cut.Kind = parted.At+d.Time(time.Second), d.Span(longestCut/8, longestCut), Cut
	back := cut
	back.Node, back.Peer = cut.Peer, cut.Node
	return []Fault{pause, parted, cut, back}
}

// ofOwners makes a source of its own for owners: what else a seed draws is the same whether they come or not.
const ofOwners = 0x6f776e6572

// visits draws that owners come, one after the other; and where daemons die, also that they do beside a dead one.
func (d *drawing) visits(die bool) (all []Fault) {
	for range d.Few(1, d.Most/2) {
		d.near = false
		all = append(all, d.incident(OwnerComes)...)
	}
	if die {
		for range d.Intn(4) {
			all = append(all, d.unwatched()...)
		}
	}
	return all
}

// unwatched draws that a machine's daemon is dead when its owner comes, and starts again while he is there: what others have stopped it must not let go on.
func (d *drawing) unwatched() (all []Fault) {
	d.near = false
	crash := Fault{At: d.when(), For: d.Span(10*time.Millisecond, longestAway/8), Kind: Crash, Node: d.desk()}
	visit := Fault{At: crash.At + d.Time(crash.For), For: crash.For + d.Span(time.Second, longestAway/2), Kind: OwnerComes, Node: crash.Node}
	return []Fault{crash, visit}
}

// ofGuards makes a source of its own for guards, likewise.
const ofGuards = 0x6775617264

// blindness draws that guards die: by themselves, about when the owner comes or goes, and about when the daemon beside them dies, too.
func (d *drawing) blindness(come, die bool) (all []Fault) {
	for range d.Few(1, d.Most/4) {
		d.near = false
		guard := d.incident(GuardDies)[0]
		all = append(all, guard)
		about := func() time.Duration { return max(guard.At-5*time.Second+d.Time(guard.For+10*time.Second), d.From) }
		if come && d.One(2) {
			all = append(all, Fault{At: about(), For: d.Span(10*time.Millisecond, longestAway), Kind: OwnerComes, Node: guard.Node})
		}
		if die && d.One(2) {
			all = append(all, Fault{At: about(), For: d.Span(10*time.Millisecond, longestAway/8), Kind: Crash, Node: guard.Node})
		}
	}
	return all
}

// ofTakers makes a source of its own for machines at others' addresses, likewise.
const ofTakers = 0x74616b6572

// takers draws that a machine is cut off from everybody and another one answers at its address, for about as long as leases are.
func (d *drawing) takers() (all []Fault) {
	for range d.Few(1, 3) {
		d.near = false
		f := Fault{At: d.when(), For: d.Span(longestCut/8, longestCut), Kind: TakesAddr, Node: Pick(d.Rand, d.Nodes.Machines)}
		for f.Peer = f.Node; f.Peer == f.Node; {
			f.Peer = Pick(d.Rand, d.Nodes.Machines)
		}
		all = append(all, f)
	}
	return all
}

// ofFlips makes a source of its own for flipped bits, likewise.
const ofFlips = 0x666c6970

// flips draws that the log of a central manager is damaged while it is down. It is always the same one's: where most have damage nobody knows what was said.
func (d *drawing) flips() (all []Fault) {
	d.near = false
	name := Pick(d.Rand, d.Nodes.Managers)
	for range d.Few(1, 3) {
		all = append(all, Fault{At: d.when(), For: d.Span(10*time.Millisecond, longestAway), Kind: Flip, Node: name, N: d.Between(1, 1<<20)})
	}
	return all
}

// ofLosses makes a source of its own for damage to the logs of schedds, likewise.
const ofLosses = 0x6c6f7373

// losses draws that the log of a schedd is damaged while it is down.
func (d *drawing) losses() (all []Fault) {
	d.near = false
	for range d.Few(1, 3) {
		all = append(all, Fault{
			At: d.when(), For: d.Span(10*time.Millisecond, longestAway), Kind: Flip, Node: Pick(d.Rand, d.Nodes.Schedds), N: d.Between(1, 1<<20),
		})
	}
	return all
}

func (d *drawing) disk() string {
	if len(d.Disks) > 0 {
		return d.one(d.Disks)
	}
	return d.one(d.Nodes.all())
}

func (d *drawing) desk() string {
	if len(d.Desks) > 0 {
		return d.one(d.Desks)
	}
	return d.one(d.Nodes.Machines)
}

// step draws by how much a wall clock is put forward or back.
func (d *drawing) step() time.Duration {
	by := d.Span(time.Second, longestStep)
	if d.One(2) {
		return -by
	}
	return by
}

// network draws what happens between nodes: to one pair, to all pairs of one node, or between two halves; in one direction or both; once, or again and again
// (Alquraan et al., "An Analysis of Network-Partitioning Failures in Cloud Systems", OSDI 2018: complete, partial and simplex partitions, and most that
// do harm cut off one node).
func (d *drawing) network(f Fault) (all []Fault) {
	f.For = d.Span(10*time.Millisecond, longestCut)
	if d.One(2) {
		f.For = d.Span(longestCut/8, longestCut) // about as long as leases are
	}
	if f.Kind == Slow {
		f.Amount = d.Span(10*time.Millisecond, 5*time.Second)
	}
	if f.Kind == Break {
		f.For = 0
	}
	pairs := d.pairs()
	again := 1
	if d.One(4) { // flapping
		again = d.Between(2, 6)
		f.For = min(f.For, 5*time.Second)
	}
	oneWay := d.One(3)
	for range again {
		for _, p := range pairs {
			one := f
			one.Node, one.Peer = p[0], p[1]
			all = append(all, one)
			if one.Node, one.Peer = p[1], p[0]; !oneWay && f.Kind != Break {
				all = append(all, one)
			}
		}
		f.At += f.For + d.Span(10*time.Millisecond, 5*time.Second)
		if f.At >= d.Calm {
			break
		}
	}
	return all
}

// pairs draws between whom it happens.
func (d *drawing) pairs() (pairs [][2]string) {
	all := d.Nodes.all()
	if len(all) < 2 {
		return nil
	}
	if len(d.focus) > 0 && !d.One(4) {
		return [][2]string{{d.focus[0], d.focus[1]}}
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
		a := d.one(all)
		for _, b := range all {
			if a != b {
				pairs = append(pairs, [2]string{a, b})
			}
		}
		return pairs
	}
	a := d.one(all)
	for {
		if b := Pick(d.Rand, all); a != b {
			return [][2]string{{a, b}}
		}
	}
}
