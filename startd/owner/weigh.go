package owner

import (
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// verdict is what the machine as a whole is now.
type verdict struct {
	stop    string // why nothing may run, whatever the policy says; empty: it may
	busy    string // why the machine is its owner's, stop included; empty: it is not
	willing bool   // claims may be given, as far as that does not depend on the job
	why     string // not
}

// clock is the wall clock at this instant.
func (c *Core) clock() time.Time { return c.wall.Add(c.now - c.wallAt) }

// env is what expressions may ask of the world.
func (c *Core) env() *classad.Env { return &classad.Env{Now: c.clock()} }

// unix is an instant as the wall clock stands now: differences to time() are durations of this machine, whatever was done to that clock meanwhile.
func (c *Core) unix(at Instant) int64 { return c.clock().Add(at - c.now).Unix() }

// stopped says why nothing may run, whatever the policy says.
func (c *Core) stopped() string {
	switch {
	case c.signs.Pause != nil:
		return c.signs.Pause.String()
	case c.broken != "":
		return "the owner's file cannot be read: " + c.broken
	case c.rules.Paused:
		return "paused by the owner's file"
	case c.policy.Guarded && c.lost:
		return "its guard is not heard of"
	case c.policy.Guarded && !c.heard && c.now-c.began >= patience:
		return "its guard has not been heard of yet"
	case c.signs.Asleep && c.policy.Guarded:
		return "it goes to sleep"
	}
	for _, h := range c.rules.Hours {
		if h.Hold(c.clock()) {
			return "its owner keeps the hours " + h.Text
		}
	}
	return ""
}

// weigh judges the machine, and dresses its ad for the policy.
func (c *Core) weigh() {
	v := verdict{stop: c.stopped()}
	if (v.stop == "") != (c.verdict.stop == "") {
		c.stopFrom = c.now
	}
	v.busy = v.stop
	if v.busy == "" && c.heard && c.policy.Guarded {
		if v.busy = c.signs.unusual(c.rules.OnBattery); v.busy == "" && c.keyboardIdle() < min(present, c.policy.ResumeAfter) {
			v.busy = "its owner is active"
		}
	}
	c.verdict = v
	c.dress()
	c.judgeStart()
}

// keyboardIdle is for how long nobody was there.
func (c *Core) keyboardIdle() time.Duration {
	if c.lost || c.signs.Busy != "" || c.signs.Game {
		return 0
	}
	return max(c.now-c.person.last, 0)
}

// startAfter is for how long nobody must have been there for the machine to be lent.
func (c *Core) startAfter() time.Duration {
	if c.person.short() {
		return c.policy.ShortAfter
	}
	return c.policy.StartAfter
}

// dress writes what is the case into the ad that the policy sees. What only a guard can know is not there before it spoke.
func (c *Core) dress() {
	ad, s, wall := c.my, &c.signs, c.clock()
	if c.heard {
		ad.SetInt(roost.AttrKeyboardIdle, seconds(c.keyboardIdle()))
		ad.SetInt(roost.AttrConsoleIdle, seconds(min(max(c.now-s.Console, 0), c.now)))
		ad.SetInt(roost.AttrQuietTime, seconds(c.now-c.noisy))
		ad.SetReal(roost.AttrLoadAvg, s.Load)
		ad.SetReal(roost.AttrCondorLoad, max(s.Load-s.ForeignCPU, 0))
		ad.SetReal(roost.AttrForeignCpu, s.ForeignCPU)
		ad.SetReal(roost.AttrMemoryPressure, s.MemoryPressure)
		ad.SetReal(roost.AttrCpuPressure, s.CPUPressure)
		ad.SetBool(roost.AttrOnBattery, s.OnBattery)
		ad.SetBool(roost.AttrAsleep, s.Asleep)
		c.latchCPU()
	}
	ad.SetBool(roost.AttrPaused, s.Pause != nil || c.rules.Paused)
	ad.SetBool(roost.AttrOwnerBusy, c.verdict.busy != "")
	ad.SetString(roost.AttrOwnerBusyReason, c.verdict.busy)
	ad.SetInt(roost.AttrOwnerStart, seconds(c.startAfter()))
	ad.SetInt(roost.AttrOwnerResume, seconds(c.policy.ResumeAfter))
	ad.SetInt(roost.AttrOwnerLeave, seconds(c.policy.LeaveAfter))
	ad.SetInt(roost.AttrClockMin, int64(wall.Hour()*60+wall.Minute()))
	ad.SetInt(roost.AttrClockDay, int64(wall.Weekday()))
	c.dressAs(ad, c.state.String(), c.activity.String(), c.enteredState, c.enteredActivity)
	ad.Delete(roost.AttrJobStart)
}

func (c *Core) dressAs(ad *classad.Ad, state, activity string, enteredState, enteredActivity Instant) {
	ad.SetString(roost.AttrState, state)
	ad.SetString(roost.AttrActivity, activity)
	ad.SetInt(roost.AttrEnteredState, c.unix(enteredState))
	ad.SetInt(roost.AttrEnteredActivity, c.unix(enteredActivity))
	ad.SetInt(roost.AttrStateTimer, seconds(c.now-enteredState))
	ad.SetInt(roost.AttrActivityTimer, seconds(c.now-enteredActivity))
}

// dressFor makes the ad that of the machine as one claim sees it.
func (c *Core) dressFor(t *tenant) {
	entered := t.claimed
	if t.activity >= Vacating {
		entered = t.left
	}
	c.dressAs(c.my, t.state().String(), t.activity.String(), entered, t.since)
	c.my.SetInt(roost.AttrOwnerLeave, seconds(c.leaveAfter(t)))
	if t.Running {
		c.my.SetInt(roost.AttrJobStart, c.unix(t.Began))
	} else {
		c.my.Delete(roost.AttrJobStart)
	}
}

// latchCPU notes since when the processor is busy with others' work: as an attribute CpuBusy of the node file says, or else the guard.
func (c *Core) latchCPU() {
	busy, since := c.signs.ForeignSince != 0, c.signs.ForeignSince
	if e, ok := c.opt.Ad.Lookup("CpuBusy"); ok {
		busy, since = classad.Eval(e, c.my, nil, c.env()).IsTrue(), c.now
		if busy && c.cpuBusy {
			since = c.cpuFrom
		}
	}
	c.cpuBusy, c.cpuFrom = busy, since
	c.my.SetBool(roost.AttrCpuIsBusy, busy)
	value, at := int64(0), int64(0)
	if busy {
		value, at = 1, c.unix(since)
	}
	c.my.SetInt(roost.AttrCpuBusyValue, value)
	c.my.SetInt(roost.AttrCpuBusyTime, at)
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// judgeStart decides whether claims may be given, and what of Start is left for the job to meet.
func (c *Core) judgeStart() {
	v, env := &c.verdict, c.env()
	var left []string
	mixed := false
	for _, term := range c.policy.Start {
		for _, e := range classad.Conjuncts(term.Expr) {
			if c.asksJob(e) {
				left = append(left, "("+e.String()+")")
				mixed = mixed || asksGuard(e)
				continue
			}
			value := classad.Eval(e, c.my, nil, env)
			if truth, ok := value.Truth(); (!ok || !truth) && v.why == "" {
				v.why = c.unmet("start", term, e, value)
			}
		}
	}
	switch {
	case v.stop != "":
		v.why = v.stop
	case c.policy.Guarded && !c.heard:
		v.why = "its guard has not been heard of yet"
	case v.busy != "" && v.why != "":
		v.why = v.busy
	}
	v.willing = v.why == ""
	start := strings.Join(left, " && ")
	if !v.willing {
		start = "false"
	} else if start == "" {
		start = "true"
	}
	if start != c.start || v.why != c.why || mixed && c.now-c.described >= remake {
		c.start, c.why, c.described = start, v.why, c.now
		c.version++
	}
}

// remake is how often the ad is made anew where the job has to meet a condition in which the time since a touch stands.
const remake = time.Minute

// unmet says what a term lacks, and complains if it makes no sense.
func (c *Core) unmet(setting string, term Term, e classad.Expr, value classad.Value) string {
	if _, ok := value.Truth(); ok {
		if why := c.preset(term, e); why != "" {
			return why
		}
		return setting + " of " + term.From + ": " + e.String() + " is false"
	}
	text := setting + " of " + term.From + ": " + e.String() + " is " + strings.ToUpper(value.String())
	if r := value.Reason(); r != "" {
		text += " (" + r + ")"
	} else if names := c.missing(e); len(names) > 0 {
		text += ", as nothing is known of " + strings.Join(names, ", ")
	}
	if (c.heard || !c.policy.Guarded) && !c.said[text] && len(c.said) < maxSaid {
		c.said[text] = true
		c.emit(Complain{text})
	}
	return text
}

// preset says in words what a condition of a preset asks for.
func (c *Core) preset(term Term, e classad.Expr) string {
	if !strings.HasPrefix(term.From, fromPreset) {
		return ""
	}
	_, _, about := classad.References(e)
	switch {
	case slices.Contains(about, roost.AttrClockMin):
		return "these are working hours"
	case slices.Contains(about, roost.AttrKeyboardIdle):
		return "its owner left less than " + c.startAfter().String() + " ago"
	case slices.Contains(about, roost.AttrQuietTime):
		return "it has not been quiet for " + c.policy.ResumeAfter.String()
	}
	return ""
}

// maxSaid bounds the complaints: each is said once.
const maxSaid = 100

// asksJob reports whether an expression depends on the job: it names TARGET, or something that the machine does not know of itself.
func (c *Core) asksJob(e classad.Expr) bool {
	return c.reaches(e, nil, func(scope, name string) bool {
		_, known := c.my.Lookup(name)
		return scope == "TARGET" || scope == "" && !known && !guardKnows(name)
	})
}

// missing are the names in an expression that mean nothing here.
func (c *Core) missing(e classad.Expr) []string {
	var names []string
	c.reaches(e, nil, func(scope, name string) bool {
		if _, known := c.my.Lookup(name); scope != "TARGET" && !known && !slices.Contains(names, name) {
			names = append(names, name)
		}
		return false
	})
	return names
}

// reaches reports whether found holds for a name in an expression, or in the attributes of the machine that it leads to.
func (c *Core) reaches(e classad.Expr, seen []string, found func(scope, name string) bool) bool {
	my, target, unscoped := classad.References(e)
	for _, name := range target {
		if found("TARGET", name) {
			return true
		}
	}
	for i, name := range slices.Concat(my, unscoped) {
		scope := "MY"
		if i >= len(my) {
			scope = ""
		}
		if found(scope, name) {
			return true
		}
		lower := strings.ToLower(name)
		if next, ok := c.my.Lookup(name); ok && !slices.Contains(seen, lower) && c.reaches(next, append(seen, lower), found) {
			return true
		}
	}
	return false
}

// guardAttributes are what only a guard can know.
var guardAttributes = []string{
	roost.AttrKeyboardIdle, roost.AttrConsoleIdle, roost.AttrQuietTime, roost.AttrCondorLoad, roost.AttrForeignCpu, roost.AttrMemoryPressure, roost.AttrCpuPressure,
	roost.AttrOnBattery, roost.AttrAsleep, roost.AttrCpuIsBusy, roost.AttrCpuBusyTime, roost.AttrCpuBusyValue, roost.AttrOwnerBusy, roost.AttrOwnerBusyReason,
}

func guardKnows(name string) bool {
	return slices.ContainsFunc(guardAttributes, func(g string) bool { return strings.EqualFold(g, name) })
}

// asksGuard reports whether an expression names something that only a guard can know.
func asksGuard(e classad.Expr) bool {
	my, _, unscoped := classad.References(e)
	return slices.ContainsFunc(slices.Concat(my, unscoped), guardKnows)
}
