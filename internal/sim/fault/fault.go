package fault

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Kind says what happens.
type Kind uint8

// The kinds of faults. In brackets: what of a [Fault] says more of it.
const (
	Crash      Kind = iota + 1 // a daemon dies, what it has not forced to disk is lost, and it starts again [Node For; Point N: when it passes that point for the Nth time]
	Reboot                     // a whole machine does, with the tasks on it; its clock of uptime begins at 0 [Node For]
	Tear                       // when a daemon dies next, the write that it was at is on its disk in part [Node]
	Pause                      // a daemon stands still, and does not know (SIGSTOP) [Node For]
	Suspend                    // a machine sleeps with all that is on it, and its clock of uptime goes on [Node For]
	Cut                        // nothing comes through from a node to another [Node Peer For]
	Slow                       // it takes longer than usual [Node Peer Amount For]
	Break                      // the sessions between two nodes break, with all that is on its way [Node Peer]
	Step                       // a wall clock is put forward, or back [Node Amount]
	SlowDisk                   // each write takes longer [Node Amount For]
	FullDisk                   // no write succeeds [Node For]
	SlowNode                   // a daemon takes so long for whatever it does [Node Amount For]
	OwnerComes                 // somebody uses the machine himself [Node For]
	GuardDies                  // what would see that dies, and starts again [Node For]
	TakesAddr                  // another machine answers at the address of one that cannot be reached [Node Peer For]
	Flip                       // a daemon dies, a bit on its disk is another one, and it starts again [Node For N: which bit]
	kinds      = iota
)

var names = [...]string{
	Crash: "crashes", Reboot: "reboots", Tear: "torn writes", Pause: "pauses", Suspend: "suspends", Cut: "cuts", Slow: "delays", Break: "broken sessions",
	Step: "clock steps", SlowDisk: "slow disks", FullDisk: "full disks", SlowNode: "slow nodes", OwnerComes: "owners", GuardDies: "dead guards", TakesAddr: "taken addresses", Flip: "flipped bits",
}

// Kinds lists all kinds.
func Kinds() []Kind {
	all := make([]Kind, 0, kinds)
	for k := Crash; int(k) <= kinds; k++ {
		all = append(all, k)
	}
	return all
}

// String names a kind, in the plural.
func (k Kind) String() string { return names[k] }

// Fault is one fault.
type Fault struct {
	At     time.Duration // since the beginning
	For    time.Duration
	Kind   Kind
	Node   string
	Peer   string
	Point  string // of those that package internal/fault names
	N      int
	Amount time.Duration
}

// Over is when a fault is over. One at a point is taken to happen at once.
func (f *Fault) Over() time.Duration { return f.At + f.For }

// String is one line for people, without the time.
func (f Fault) String() string {
	lasts := fmt.Sprintf("for %v", f.For)
	switch f.Kind {
	case Crash:
		if f.Point != "" {
			return fmt.Sprintf("%s dies when it passes %s for the %s time from now on, and starts again %v later", f.Node, f.Point, ordinal(f.N), f.For)
		}
		return fmt.Sprintf("%s dies, and starts again %v later", f.Node, f.For)
	case Reboot:
		return fmt.Sprintf("the machine of %s dies with all that runs on it, and is up again %v later", f.Node, f.For)
	case Tear:
		return fmt.Sprintf("%s: when it dies next, its last write is on disk in part", f.Node)
	case Pause:
		return fmt.Sprintf("%s is stopped %s", f.Node, lasts)
	case Suspend:
		return fmt.Sprintf("the machine of %s sleeps %s", f.Node, lasts)
	case Cut:
		return fmt.Sprintf("nothing comes through from %s to %s %s", f.Node, f.Peer, lasts)
	case Slow:
		return fmt.Sprintf("what %s sends to %s takes %v longer %s", f.Node, f.Peer, f.Amount, lasts)
	case Break:
		return fmt.Sprintf("the sessions between %s and %s break", f.Node, f.Peer)
	case Step:
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
		return fmt.Sprintf("the guard of %s dies, and starts again %v later", f.Node, f.For)
	case TakesAddr:
		return fmt.Sprintf("%s is cut off, and %s answers at its address, %s", f.Node, f.Peer, lasts)
	case Flip:
		return fmt.Sprintf("%s dies, a bit of what it has on disk is another one, and it starts again %v later", f.Node, f.For)
	}
	return fmt.Sprintf("kind(%d)", f.Kind)
}

// ordinal is "1st", "2nd" and so on.
func ordinal(n int) string {
	suffix := "th"
	if tens := n / 10 % 10; tens != 1 && n%10 >= 1 && n%10 <= 3 {
		suffix = [...]string{"", "st", "nd", "rd"}[n%10]
	}
	return fmt.Sprint(n, suffix)
}

// Sort orders faults by when they happen.
func Sort(all []Fault) {
	slices.SortStableFunc(all, func(f, g Fault) int { return cmp.Compare(f.At, g.At) })
}

// Smaller lists faults that do less than f, or the same for a shorter time, what does least first: whoever looks for the shortest story tries them in its place.
func (f Fault) Smaller() (all []Fault) {
	add := func(change func(*Fault)) {
		g := f
		change(&g)
		if g != f {
			all = append(all, g)
		}
	}
	if f.For > least {
		add(func(g *Fault) { g.For = least })
		add(func(g *Fault) { g.For = (f.For / 4).Truncate(time.Millisecond) })
		add(func(g *Fault) { g.For = (f.For / 2).Truncate(time.Millisecond) })
	}
	if f.Amount > least || f.Amount < -least {
		add(func(g *Fault) { g.Amount = (f.Amount / 16).Truncate(time.Millisecond) })
		add(func(g *Fault) { g.Amount = (f.Amount / 2).Truncate(time.Millisecond) })
	}
	if f.N > 1 {
		add(func(g *Fault) { g.N = 1 })
		add(func(g *Fault) { g.N = f.N / 2 })
	}
	return all
}

// least is the shortest time that is worth telling.
const least = 10 * time.Millisecond
