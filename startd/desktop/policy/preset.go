package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/classad"
)

// workHours are the hours of preset desktop-hours: from Monday to Friday, 8 to 18
// o'clock.
const workHours = "ClockDay >= 1 && ClockDay <= 5 && ClockMin >= 480 && ClockMin < 1080"

// policyPreset is a policy as it is written down.
type policyPreset struct {
	name                                     string
	start, suspend, continue_, preempt, kill string
	guarded                                  bool
	retire                                   time.Duration
}

const (
	desktopStart    = "!OwnerBusy && KeyboardIdle >= StartAfter && QuietTime >= ResumeAfter"
	desktopContinue = "!OwnerBusy && KeyboardIdle >= ResumeAfter && QuietTime >= ResumeAfter"
	desktopPreempt  = `Activity == "Suspended" && (ActivityTimer >= LeaveAfter || MemoryPressure > 5)`
	hoursPreempt    = `Activity == "Suspended" && (ActivityTimer >= LeaveAfter || MemoryPressure > 5 || ActivityTimer >= 120 && ` + workHours + ")"
)

func presets() []policyPreset {
	return []policyPreset{
		{name: "always", start: "true", suspend: "false", continue_: "true", preempt: "false", kill: "false"},
		{name: "server", start: "true", suspend: "false", continue_: "true", preempt: "false", kill: "false",
			retire: math.MaxInt64 / 4},
		{name: "desktop", start: desktopStart, suspend: "OwnerBusy", continue_: desktopContinue,
			preempt: desktopPreempt, kill: "false", guarded: true},
		{name: "desktop-hours", start: desktopStart + " && !(" + workHours + ")", suspend: "OwnerBusy || " + workHours,
			continue_: desktopContinue + " && !(" + workHours + ")", preempt: hoursPreempt, kill: "false",
			guarded: true},
	}
}

// presetOrigin is what a term of a preset comes from.
const presetOrigin = "policy "

// PresetNames names the presets, for people.
func PresetNames() string {
	var names []string
	for _, p := range presets() {
		names = append(names, strconv.Quote(p.name))
	}
	return strings.Join(names, ", ")
}

// PresetPolicy is the policy of that name; the empty name is "always".
//
// The times are those that people accept: BOINC and HTCondor's desktop policy begin after
// 3 and 15 minutes and go on after 3 and 5. A task leaves after 10 minutes, as HTCondor's
// does, and not after 2: it goes on only after 5 minutes of quiet, so that none would
// ever outlast even one key. While it stands still it costs the owner memory alone, and
// of that it gives back what it can. Where it costs him more, or nobody knows when it
// could go on, 2 minutes it is.
func PresetPolicy(name string) (Policy, bool) {
	if name == "" {
		name = "always"
	}
	for _, p := range presets() {
		if p.name != name {
			continue
		}
		from := presetOrigin + name
		return Policy{
			Name:  name,
			Start: newTerm(p.start, from), Suspend: newTerm(p.suspend, from), Continue: newTerm(p.continue_, from),
			Preempt: newTerm(p.preempt, from), Kill: newTerm(p.kill, from),
			NeedsGuard: p.guarded, RetirementTime: p.retire,
			StartDelay: 10 * time.Minute, ShortStartDelay: 3 * time.Minute, ResumeDelay: 5 * time.Minute,
			VacateDelay: 10 * time.Minute, ShortVacateDelay: 2 * time.Minute,
			GPUGrace: 5 * time.Second, MemoryTrimDelay: 30 * time.Second, VacateTime: 10 * time.Minute,
			KillInterval: 30 * time.Second,
		}, true
	}
	return Policy{}, false
}

func newTerm(src, from string) []ConditionTerm {
	e, err := classad.ParseExpr(src)
	if err != nil {
		panic(fmt.Sprintf("%s: %s: %v", from, src, err))
	}
	return []ConditionTerm{{e, from}}
}
