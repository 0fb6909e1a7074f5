package faults

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// InjectionKind is the kind of a fault.
type InjectionKind uint8

// The kinds of faults. The brackets list the fields of [Fault] that a kind uses.
const (
	// a daemon crashes, loses what it has not synced to disk, and restarts [Node
	// Duration; Failpoint N: at the Nth time that it passes that failpoint]
	Crash InjectionKind = iota + 1
	// a host reboots and its tasks die; its boot time begins at 0 [Node Duration]
	Reboot
	// the write in progress at the daemon's next crash is on disk in part [Node]
	TornWrite
	Pause // a daemon is stopped and does not notice (SIGSTOP) [Node Duration]
	// a host suspends with all that runs on it, and its boot time advances [Node
	// Duration]
	Suspend
	Partition // nothing gets through from one node to another [Node Peer Duration]
	SlowLink  // messages take longer than usual [Node Peer Amount Duration]
	// the sessions between two nodes break, with everything in transit [Node Peer]
	BreakSessions
	ClockStep  // a wall clock is set forward or back [Node Amount]
	SlowDisk   // each write takes longer [Node Amount Duration]
	FullDisk   // every write fails [Node Duration]
	SlowNode   // every action of a daemon takes this long [Node Amount Duration]
	OwnerComes // the machine owner uses the machine [Node Duration]
	GuardDies  // the guard dies and restarts [Node Duration]
	// a machine is cut off, and another one answers at its address [Node Peer Duration]
	TakeAddress
	// a daemon dies, a bit on its disk flips, and the daemon restarts [Node Duration N:
	// which bit]
	BitFlip
	kindCount = iota
)

var kindNames = [...]string{
	Crash: "crashes", Reboot: "reboots", TornWrite: "torn writes", Pause: "pauses", Suspend: "suspends",
	Partition: "cuts", SlowLink: "delays", BreakSessions: "broken sessions",
	ClockStep: "clock steps", SlowDisk: "slow disks", FullDisk: "full disks", SlowNode: "slow nodes",
	OwnerComes: "owners", GuardDies: "dead guards", TakeAddress: "taken addresses", BitFlip: "flipped bits",
}

// AllKinds lists all kinds.
func AllKinds() []InjectionKind {
	all := make([]InjectionKind, 0, kindCount)
	for k := Crash; int(k) <= kindCount; k++ {
		all = append(all, k)
	}
	return all
}

// String returns the name of a kind, in the plural.
func (k InjectionKind) String() string { return kindNames[k] }

// Fault is one fault.
type Fault struct {
	At        time.Duration // since the beginning of the simulation
	Duration  time.Duration
	Kind      InjectionKind
	Node      string
	Peer      string
	Failpoint string // a failpoint that package internal/failpoint names
	N         int
	Amount    time.Duration
}

// End returns when a fault is over. A crash at a failpoint counts as immediate.
func (f *Fault) End() time.Duration { return f.At + f.Duration }

// String describes the fault in one line, without its time.
func (f Fault) String() string {
	lasts := fmt.Sprintf("for %v", f.Duration)
	switch f.Kind {
	case Crash:
		if f.Failpoint != "" {
			return fmt.Sprintf("%s dies when it passes %s for the %s time from now on, and starts again %v later",
				f.Node, f.Failpoint, ordinal(f.N), f.Duration)
		}
		return fmt.Sprintf("%s dies, and starts again %v later", f.Node, f.Duration)
	case Reboot:
		return fmt.Sprintf("the machine of %s dies with all that runs on it, and is up again %v later", f.Node,
			f.Duration)
	case TornWrite:
		return fmt.Sprintf("%s: when it dies next, its last write is on disk in part", f.Node)
	case Pause:
		return fmt.Sprintf("%s is stopped %s", f.Node, lasts)
	case Suspend:
		return fmt.Sprintf("the machine of %s sleeps %s", f.Node, lasts)
	case Partition:
		return fmt.Sprintf("nothing comes through from %s to %s %s", f.Node, f.Peer, lasts)
	case SlowLink:
		return fmt.Sprintf("what %s sends to %s takes %v longer %s", f.Node, f.Peer, f.Amount, lasts)
	case BreakSessions:
		return fmt.Sprintf("the sessions between %s and %s break", f.Node, f.Peer)
	case ClockStep:
		if f.Amount < 0 {
			return fmt.Sprintf("the wall clock of %s is put back by %v", f.Node, -f.Amount)
		}
		return fmt.Sprintf("the wall clock of %s is put forward by %v", f.Node, f.Amount)
	case SlowDisk:
		return fmt.Sprintf("each write of %s takes %v longer %s", f.Node, f.Amount, lasts)
	case FullDisk:
		return fmt.Sprintf("the disk of %s is full %s", f.Node, lasts)
	case SlowNode:
		return fmt.Sprintf("%s takes %v for whatever it does %s", f.Node, f.Amount, lasts)
	case OwnerComes:
		return fmt.Sprintf("the owner of %s comes back, and stays %s", f.Node, lasts)
	case GuardDies:
		return fmt.Sprintf("the guard of %s dies, and starts again %v later", f.Node, f.Duration)
	case TakeAddress:
		return fmt.Sprintf("%s is cut off, and %s answers at its address, %s", f.Node, f.Peer, lasts)
	case BitFlip:
		return fmt.Sprintf("%s dies, a bit of what it has on disk is another one, and it starts again %v later", f.Node,
			f.Duration)
	}
	return fmt.Sprintf("kind(%d)", f.Kind)
}

// ordinal returns "1st", "2nd" and so on.
func ordinal(n int) string {
	suffix := "th"
	if tens := n / 10 % 10; tens != 1 && n%10 >= 1 && n%10 <= 3 {
		suffix = [...]string{"", "st", "nd", "rd"}[n%10]
	}
	return fmt.Sprint(n, suffix)
}

// SortByTime sorts faults by time.
func SortByTime(all []Fault) {
	slices.SortStableFunc(all, func(f, g Fault) int { return cmp.Compare(f.At, g.At) })
}

// Reductions lists weaker or shorter variants of f, the weakest first. Minimizing tries
// them in its place.
func (f Fault) Reductions() (all []Fault) {
	add := func(change func(*Fault)) {
		g := f
		change(&g)
		if g != f {
			all = append(all, g)
		}
	}
	if f.Duration > minDuration {
		add(func(g *Fault) { g.Duration = minDuration })
		add(func(g *Fault) { g.Duration = (f.Duration / 4).Truncate(time.Millisecond) })
		add(func(g *Fault) { g.Duration = (f.Duration / 2).Truncate(time.Millisecond) })
	}
	if f.Amount > minDuration || f.Amount < -minDuration {
		add(func(g *Fault) { g.Amount = (f.Amount / 16).Truncate(time.Millisecond) })
		add(func(g *Fault) { g.Amount = (f.Amount / 2).Truncate(time.Millisecond) })
	}
	if f.N > 1 {
		add(func(g *Fault) { g.N = 1 })
		add(func(g *Fault) { g.N = f.N / 2 })
	}
	return all
}

// minDuration is the time up to which Reductions leaves durations and amounts alone.
const minDuration = 10 * time.Millisecond
