package policy

import (
	"math"
	"strings"
	"time"

	"github.com/roost-batch/roost/classad"
)

// BootTime is a time in nanoseconds of CLOCK_BOOTTIME.
type BootTime = time.Duration

// Never is later than everything.
const Never BootTime = math.MaxInt64

// guardPatience is how long the core waits for the first word of the guard before it
// takes the machine to be in use: a startd that was restarted is not to freeze what its
// predecessor ran, only because it asks first. Nothing starts meanwhile.
const guardPatience = 2 * time.Second

// PolicyOptions are what a core is made with.
type PolicyOptions struct {
	Policy Policy
	Name   string      // the machine's
	Ad     *classad.Ad // what it says of itself, as the policy is to see it; nil: nothing
	// how often expressions are weighed that may change with time; 0: as often as
	// HTCondor does, each 5 s
	Poll time.Duration
}

// PolicyCore decides for one machine. One goroutine calls it.
type PolicyCore struct {
	options    PolicyOptions
	policy     Policy // with the owner's rules
	rules      DesktopRules
	rulesError string // why the owner's rules cannot be read; empty: they can

	startedAt     BootTime // the first call; -1: there was none
	now           BootTime // of the last call
	nextCheck     BootTime // asked for by the last Todo
	wall          time.Time
	wallAt        BootTime
	observations  GuardObservations
	guardReported bool // the guard has spoken
	guardLost     bool // and is not heard of any more
	presence      userPresence
	lastOwnerUse  BootTime // when something other than a person last made the machine its owner's; below 0: never
	cpuBusy       bool
	cpuBusySince  BootTime // since when

	claims       []*claimState
	effects      []Effect
	loggedErrors map[string]bool // complaints that stand

	state           MachineState
	activity        ClaimActivity
	enteredState    BootTime
	enteredActivity BootTime
	total           [Preempting + 1][Killing + 1]time.Duration
	version         uint64

	machineAd   *classad.Ad // as the policy sees it
	verdict     machineState
	start       string   // what the ad says of Start
	startReason string   // and of why that is false
	describedAt BootTime // when that was new
	stopSince   BootTime // since when something stops all tasks, or nothing does
}

// New is the core of a machine on which nothing runs. Until it has heard of its guard, it
// is its owner's, if the policy wants a guard at all.
func New(opt PolicyOptions) *PolicyCore {
	if opt.Ad == nil {
		opt.Ad = classad.New()
	}
	if opt.Poll == 0 {
		opt.Poll = pollInterval
	}
	return &PolicyCore{options: opt, policy: opt.Policy, machineAd: opt.Ad.Copy(), loggedErrors: map[string]bool{},
		startedAt: -1, lastOwnerUse: -1, nextCheck: Never}
}

// SetMachineAd replaces what the machine says of itself.
func (c *PolicyCore) SetMachineAd(ad *classad.Ad) { c.options.Ad, c.machineAd = ad, ad.Copy() }

// Observe takes in what the guard sees, and the clock on the wall in the machine's time
// zone.
func (c *PolicyCore) Observe(now BootTime, wall time.Time, s GuardObservations) {
	c.advanceTo(now)
	c.SetWall(now, wall)
	if !c.guardReported {
		c.presence.assumeLongVisit(s.Input)
	}
	if c.observations.Asleep && !s.Asleep {
		c.recordInput(now) // somebody woke it
	}
	c.observations, c.guardReported, c.guardLost = s, true, false
	c.recordInput(s.Input)
	c.followObservations()
}

// SetWall sets the clock on the wall. Only hours, and what expressions ask of the time of
// day, depend on it.
func (c *PolicyCore) SetWall(now BootTime, wall time.Time) { c.wall, c.wallAt = wall, now }

// GuardLost notes that the guard is not heard of any more.
func (c *PolicyCore) GuardLost(now BootTime) {
	c.advanceTo(now)
	c.guardLost = true
}

// SetRules takes in the owner's own file. With an error, which is why it cannot be read,
// the machine is not lent.
func (c *PolicyCore) SetRules(now BootTime, r DesktopRules, err error) {
	c.advanceTo(now)
	c.rulesError = ""
	if err != nil {
		c.rulesError, _, _ = strings.Cut(err.Error(), "\n")
		return
	}
	c.rules, c.policy = r, c.options.Policy.withRules(r)
}

// advanceTo goes on to an instant. One that comes long after it was asked for was slept
// through: what a task had left of its time, it still has.
func (c *PolicyCore) advanceTo(now BootTime) {
	if c.startedAt < 0 {
		c.startedAt, c.now, c.enteredState, c.enteredActivity, c.wallAt = now, now, now, now, now
	}
	if now < c.now {
		return
	}
	if gap := now - c.now; c.nextCheck != Never && now-c.nextCheck > time.Minute {
		for _, t := range c.claims {
			t.skipGap(gap)
		}
		if c.guardReported {
			c.recordInput(now)
		}
	}
	c.now, c.nextCheck = now, max(c.nextCheck, now)
	c.followObservations()
}

func (t *claimState) skipGap(gap BootTime) {
	for _, at := range []*BootTime{&t.since, &t.vacateAt, &t.frozenSince, &t.memoryTrimmedAt, &t.unusableSince,
		&t.retireBy, &t.lastKill} {
		if *at > 0 {
			*at += gap
		}
	}
}

func (c *PolicyCore) recordInput(at BootTime) { c.presence.addInput(at, c.policy.StartDelay) }

// followObservations follows what lasts as long as the signs stand.
func (c *PolicyCore) followObservations() {
	if !c.guardReported || c.guardLost {
		return
	}
	if c.observations.OwnerUseReason != "" || c.observations.ExclusiveProgram {
		c.recordInput(c.now)
	} else if c.observations.otherOwnerUse(c.rules.RunsOnBattery) != "" {
		c.lastOwnerUse = c.now
	}
}

// Version rises whenever the machine's ad is to be made anew.
func (c *PolicyCore) Version() uint64 { return c.version }

func (c *PolicyCore) addEffect(o Effect) { c.effects = append(c.effects, o) }
