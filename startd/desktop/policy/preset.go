package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/classad"
)

// workHours are the working hours of the preset desktop-hours. They are 8 to 18 o'clock
// from Monday to Friday.
const workHours = "ClockDay >= 1 && ClockDay <= 5 && ClockMin >= 480 && ClockMin < 1080"

// policyPreset is a preset as written in the table.
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

// presetOrigin is the prefix of the origin of a preset's terms.
const presetOrigin = "policy "

// PresetNames lists the presets, for people.
func PresetNames() string {
	var names []string
	for _, p := range presets() {
		names = append(names, strconv.Quote(p.name))
	}
	return strings.Join(names, ", ")
}

// PresetPolicy returns the preset of that name; the empty name is "always".
//
// The times are those that people accept: BOINC and HTCondor's desktop policy start after
// 3 and 15 minutes and resume after 3 and 5. A task is vacated after 10 minutes, as with
// HTCondor, and not after 2: it resumes only after 5 minutes without input, so that
// otherwise no task would survive a single key press. A frozen task costs the owner only
// memory, of which it returns what it can. If it costs more, or may never resume, the
// limit is 2 minutes.
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
