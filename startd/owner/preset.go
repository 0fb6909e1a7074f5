package owner

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/classad"
)

// workHours are the hours of preset desktop-hours: from Monday to Friday, 8 to 18 o'clock.
const workHours = "ClockDay >= 1 && ClockDay <= 5 && ClockMin >= 480 && ClockMin < 1080"

// preset is a policy as it is written down.
type preset struct {
	name                                     string
	start, suspend, continue_, preempt, kill string
	guarded                                  bool
	retire                                   time.Duration
}

const (
	deskStart    = "!OwnerBusy && KeyboardIdle >= StartAfter && QuietTime >= ResumeAfter"
	deskContinue = "!OwnerBusy && KeyboardIdle >= ResumeAfter && QuietTime >= ResumeAfter"
	deskPreempt  = `Activity == "Suspended" && (ActivityTimer >= LeaveAfter || MemoryPressure > 5)`
	hoursPreempt = `Activity == "Suspended" && (ActivityTimer >= LeaveAfter || MemoryPressure > 5 || ActivityTimer >= 120 && ` + workHours + ")"
)

func presets() []preset {
	return []preset{
		{name: "always", start: "true", suspend: "false", continue_: "true", preempt: "false", kill: "false"},
		{name: "server", start: "true", suspend: "false", continue_: "true", preempt: "false", kill: "false", retire: math.MaxInt64 / 4},
		{name: "desktop", start: deskStart, suspend: "OwnerBusy", continue_: deskContinue, preempt: deskPreempt, kill: "false", guarded: true},
		{name: "desktop-hours", start: deskStart + " && !(" + workHours + ")", suspend: "OwnerBusy || " + workHours,
			continue_: deskContinue + " && !(" + workHours + ")", preempt: hoursPreempt, kill: "false", guarded: true},
	}
}

// fromPreset is what a term of a preset comes from.
const fromPreset = "policy "

// Presets names the presets, for people.
func Presets() string {
	var names []string
	for _, p := range presets() {
		names = append(names, strconv.Quote(p.name))
	}
	return strings.Join(names, ", ")
}

// Preset is the policy of that name; the empty name is "always".
//
// The times are those that people accept: BOINC and HTCondor's desktop policy begin after 3 and 15 minutes and go on after 3 and 5. A task leaves after 10 minutes, as
// HTCondor's does, and not after 2: it goes on only after 5 minutes of quiet, so that none would ever outlast even one key. While it stands still it costs the owner
// memory alone, and of that it gives back what it can. Where it costs him more, or nobody knows when it could go on, 2 minutes it is.
func Preset(name string) (Policy, bool) {
	if name == "" {
		name = "always"
	}
	for _, p := range presets() {
		if p.name != name {
			continue
		}
		from := fromPreset + name
		return Policy{
			Name:  name,
			Start: term(p.start, from), Suspend: term(p.suspend, from), Continue: term(p.continue_, from), Preempt: term(p.preempt, from), Kill: term(p.kill, from),
			Guarded: p.guarded, Retire: p.retire,
			StartAfter: 10 * time.Minute, ShortAfter: 3 * time.Minute, ResumeAfter: 5 * time.Minute, LeaveAfter: 10 * time.Minute, LeaveSoon: 2 * time.Minute,
			GPUGrace: 5 * time.Second, ShrinkAfter: 30 * time.Second, Vacate: 10 * time.Minute, Killing: 30 * time.Second,
		}, true
	}
	return Policy{}, false
}

func term(src, from string) []Term {
	e, err := classad.ParseExpr(src)
	if err != nil {
		panic(fmt.Sprintf("%s: %s: %v", from, src, err))
	}
	return []Term{{e, from}}
}
