package owner

import (
	"math"
	"strings"
	"time"

	"github.com/roost-batch/roost/classad"
)

// Instant is a time in nanoseconds of CLOCK_BOOTTIME.
type Instant = time.Duration

// Never is later than everything.
const Never Instant = math.MaxInt64

// patience is how long the core waits for the first word of the guard before it takes the machine to be in use: a startd that was restarted is not to freeze
// what its predecessor ran, only because it asks first. Nothing starts meanwhile.
const patience = 2 * time.Second

// Options are what a core is made with.
type Options struct {
	Policy Policy
	Name   string        // the machine's
	Ad     *classad.Ad   // what it says of itself, as the policy is to see it; nil: nothing
	Poll   time.Duration // how often expressions are weighed that may change with time; 0: as often as HTCondor does, each 5 s
}

// Core decides for one machine. One goroutine calls it.
type Core struct {
	opt    Options
	policy Policy // with the owner's rules
	rules  Rules
	broken string // why the owner's rules cannot be read; empty: they can

	began   Instant // the first call; -1: there was none
	now     Instant // of the last call
	wake    Instant // asked for by the last Todo
	wall    time.Time
	wallAt  Instant
	signs   Signs
	heard   bool // the guard has spoken
	lost    bool // and is not heard of any more
	person  presence
	noisy   Instant // when something other than a person last made the machine its owner's; below 0: never
	cpuBusy bool
	cpuFrom Instant // since when

	tenants []*tenant
	orders  []Order
	said    map[string]bool // complaints that stand

	state           State
	activity        Activity
	enteredState    Instant
	enteredActivity Instant
	total           [Preempting + 1][Killing + 1]time.Duration
	version         uint64

	my        *classad.Ad // as the policy sees it
	verdict   verdict
	start     string  // what the ad says of Start
	why       string  // and of why that is false
	described Instant // when that was new
	stopFrom  Instant // since when something stops all tasks, or nothing does
}

// New is the core of a machine on which nothing runs. Until it has heard of its guard, it is its owner's, if the policy wants a guard at all.
func New(opt Options) *Core {
	if opt.Ad == nil {
		opt.Ad = classad.New()
	}
	if opt.Poll == 0 {
		opt.Poll = poll
	}
	return &Core{opt: opt, policy: opt.Policy, my: opt.Ad.Copy(), said: map[string]bool{}, began: -1, noisy: -1, wake: Never}
}

// Machine replaces what the machine says of itself.
func (c *Core) Machine(ad *classad.Ad) { c.opt.Ad, c.my = ad, ad.Copy() }

// Observe takes in what the guard sees, and the clock on the wall in the machine's time zone.
func (c *Core) Observe(now Instant, wall time.Time, s Signs) {
	c.advance(now)
	c.SetWall(now, wall)
	if !c.heard {
		c.person.unknown(s.Input)
	}
	if c.signs.Asleep && !s.Asleep {
		c.touch(now) // somebody woke it
	}
	c.signs, c.heard, c.lost = s, true, false
	c.touch(s.Input)
	c.attend()
}

// SetWall sets the clock on the wall. Only hours, and what expressions ask of the time of day, depend on it.
func (c *Core) SetWall(now Instant, wall time.Time) { c.wall, c.wallAt = wall, now }

// GuardLost notes that the guard is not heard of any more.
func (c *Core) GuardLost(now Instant) {
	c.advance(now)
	c.lost = true
}

// SetRules takes in the owner's own file. With an error, which is why it cannot be read, the machine is not lent.
func (c *Core) SetRules(now Instant, r Rules, err error) {
	c.advance(now)
	c.broken = ""
	if err != nil {
		c.broken, _, _ = strings.Cut(err.Error(), "\n")
		return
	}
	c.rules, c.policy = r, c.opt.Policy.with(r)
}

// advance goes on to an instant. One that comes long after it was asked for was slept through: what a task had left of its time, it still has.
func (c *Core) advance(now Instant) {
	if c.began < 0 {
		c.began, c.now, c.enteredState, c.enteredActivity, c.wallAt = now, now, now, now, now
	}
	if now < c.now {
		return
	}
	if gap := now - c.now; c.wake != Never && now-c.wake > time.Minute {
		for _, t := range c.tenants {
			t.slept(gap)
		}
		if c.heard {
			c.touch(now)
		}
	}
	c.now, c.wake = now, max(c.wake, now)
	c.attend()
}

func (t *tenant) slept(gap Instant) {
	for _, at := range []*Instant{&t.since, &t.left, &t.stopped, &t.shrunk, &t.barred, &t.retireBy, &t.struck} {
		if *at > 0 {
			*at += gap
		}
	}
}

func (c *Core) touch(at Instant) { c.person.touched(at, c.policy.StartAfter) }

// attend follows what lasts as long as the signs stand.
func (c *Core) attend() {
	if !c.heard || c.lost {
		return
	}
	if c.signs.Busy != "" || c.signs.Game {
		c.touch(c.now)
	} else if c.signs.unusual(c.rules.OnBattery) != "" {
		c.noisy = c.now
	}
}

// Version rises whenever the machine's ad is to be made anew.
func (c *Core) Version() uint64 { return c.version }

func (c *Core) emit(o Order) { c.orders = append(c.orders, o) }
