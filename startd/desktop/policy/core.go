package policy

import (
	"math"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Never is later than any time.
const Never roost.BootTime = math.MaxInt64

// guardPatience bounds the wait for the guard's first report before the machine counts as
// in use. A restarted startd must not freeze the tasks of its predecessor only because it
// asks first. No task starts meanwhile.
const guardPatience = 2 * time.Second

// PolicyOptions configure a PolicyCore.
type PolicyOptions struct {
	Policy Policy
	Name   string      // name of the machine
	Ad     *classad.Ad // attributes of the machine for the policy; nil: none
	// how often time-dependent expressions are evaluated; 0: every 5 s, as in HTCondor
	Poll time.Duration
}

// PolicyCore decides for one machine. One goroutine calls it.
type PolicyCore struct {
	options    PolicyOptions
	policy     Policy // with the owner's rules
	rules      DesktopRules
	rulesError string // why the owner's rules cannot be read; empty: they can

	startedAt     roost.BootTime // time of the first call; -1: there was none
	now           roost.BootTime // time of the last call
	nextCheck     roost.BootTime // the time that the last Todo returned
	wall          time.Time
	wallAt        roost.BootTime
	observations  GuardObservations
	guardReported bool // the guard has reported
	guardLost     bool // the guard does not report any more
	presence      userPresence
	lastOwnerUse  roost.BootTime // when a reason other than input last made the owner need the machine; below 0: never
	cpuBusy       bool
	cpuBusySince  roost.BootTime // when other work began to use the CPU

	claims       []*claimState
	effects      []Effect
	loggedErrors map[string]bool // errors that were logged

	state           MachineState
	activity        ClaimActivity
	enteredState    roost.BootTime
	enteredActivity roost.BootTime
	total           [Preempting + 1][Killing + 1]time.Duration
	version         uint64

	machineAd   *classad.Ad // as the policy sees it
	verdict     machineState
	start       string         // the value of Start in the ad
	startReason string         // why Start is false
	describedAt roost.BootTime // when start last changed
	stopSince   roost.BootTime // when stopReason was last set or cleared
}

// New returns the core of a machine without tasks. If the policy needs a guard, the
// machine belongs to its owner until the guard's first report.
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

// SetMachineAd replaces the machine's attributes.
func (c *PolicyCore) SetMachineAd(ad *classad.Ad) { c.options.Ad, c.machineAd = ad, ad.Copy() }

// Observe applies a report of the guard and the wall clock in the machine's time zone.
func (c *PolicyCore) Observe(now roost.BootTime, wall time.Time, s GuardObservations) {
	c.advanceTo(now)
	c.SetWall(now, wall)
	if !c.guardReported {
		c.presence.assumeLongVisit(s.Input)
	}
	if c.observations.Asleep && !s.Asleep {
		c.recordInput(now) // a person woke it
	}
	c.observations, c.guardReported, c.guardLost = s, true, false
	c.recordInput(s.Input)
	c.followObservations()
}

// SetWall sets the wall clock. Only hours and the time of day in expressions depend on
// it.
func (c *PolicyCore) SetWall(now roost.BootTime, wall time.Time) { c.wall, c.wallAt = wall, now }

// GuardLost records that the guard does not report any more.
func (c *PolicyCore) GuardLost(now roost.BootTime) {
	c.advanceTo(now)
	c.guardLost = true
}

// SetRules applies the owner's file. With an error, the reason why it cannot be read, the
// machine is not available.
func (c *PolicyCore) SetRules(now roost.BootTime, r DesktopRules, err error) {
	c.advanceTo(now)
	c.rulesError = ""
	if err != nil {
		c.rulesError, _, _ = strings.Cut(err.Error(), "\n")
		return
	}
	c.rules, c.policy = r, c.options.Policy.withRules(r)
}

// advanceTo advances the time. If it comes long after the requested time the machine
// slept: the remaining times of tasks are extended by the gap.
func (c *PolicyCore) advanceTo(now roost.BootTime) {
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

func (t *claimState) skipGap(gap roost.BootTime) {
	for _, at := range []*roost.BootTime{&t.since, &t.vacateAt, &t.frozenSince, &t.memoryTrimmedAt, &t.unusableSince,
		&t.retireBy, &t.lastKill} {
		if *at > 0 {
			*at += gap
		}
	}
}

func (c *PolicyCore) recordInput(at roost.BootTime) { c.presence.addInput(at, c.policy.StartDelay) }

// followObservations updates what lasts as long as the observations are in force.
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

// Version increases whenever the machine's ad must be rebuilt.
func (c *PolicyCore) Version() uint64 { return c.version }

func (c *PolicyCore) addEffect(o Effect) { c.effects = append(c.effects, o) }
