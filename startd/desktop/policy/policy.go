package policy

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// ConditionTerm is one term of a condition, with its origin for messages.
type ConditionTerm struct {
	Expr   classad.Expr
	Origin string // "policy desktop", "the node file", "the owner's file"
}

// Policy defines when a machine is available, and how tasks are suspended and evicted. Of
// Start and Continue all terms must hold, of the others any. The machine is MY and the
// job TARGET. The names are those of HTCondor (manual, "Policy Configuration for
// Execution Points").
type Policy struct {
	Name     string          // name of the preset
	Start    []ConditionTerm // a claim may be created
	Suspend  []ConditionTerm // a running task must be frozen
	Continue []ConditionTerm // a frozen task may resume
	Preempt  []ConditionTerm // a claim must be vacated
	Kill     []ConditionTerm // a claim that is being vacated must be killed

	// the machine has an owner: without its guard's reports it counts as in use
	NeedsGuard      bool
	StartDelay      time.Duration // without input, if the preset requires it: MY.StartAfter
	ShortStartDelay time.Duration // without input, after a touch of less than a minute
	ResumeDelay     time.Duration // without input, before a frozen task resumes: MY.ResumeAfter
	VacateDelay     time.Duration // a task frozen for the owner for so long is vacated: MY.LeaveAfter
	// like VacateDelay, for a task with GPUs, or if memory is short or nothing may run at
	// all
	ShortVacateDelay time.Duration
	GPUGrace         time.Duration // from the freeze until a task must have freed its GPUs
	MemoryTrimDelay  time.Duration // from the freeze until it must return memory; at once if memory is short
	RetirementTime   time.Duration // how long a task that must be vacated may continue to run
	VacateTime       time.Duration // bounds the time for vacating
	KillInterval     time.Duration // from one kill to the next
}

// MinResumeDelay is the shortest quiet time before tasks resume. Sources are read more
// than once a second, and input that arrives while an observation is being sent counts
// with the next one.
const MinResumeDelay = 2 * time.Second

// PolicySettings are the policy settings of a node file. Empty or 0 means the preset's
// value.
type PolicySettings struct {
	Preset                                  string // "always" if empty
	Start, Suspend, Continue, Preempt, Kill string // ClassAd expressions, in addition to the preset's
	StartAfter, ResumeAfter, LeaveAfter     time.Duration
	Vacate                                  time.Duration
}

// NewPolicy returns the policy that a node file describes. The error is a
// roost.BadConfig.
//
// The file's expressions do not replace those of the preset but add to them: a machine
// with policy "desktop" and start = "TARGET.Walltime <= 3600" is still available only
// without input. The preset "always" has no conditions, so that with it they are the
// whole policy.
func NewPolicy(s PolicySettings) (Policy, error) {
	p, ok := PresetPolicy(s.Preset)
	if !ok {
		return Policy{}, fmt.Errorf("policy %q: %w: there are %s", s.Preset, roost.BadConfig, PresetNames())
	}
	for _, own := range []struct {
		name, src string
		to        *[]ConditionTerm
	}{{"start", s.Start, &p.Start}, {"suspend", s.Suspend, &p.Suspend}, {"continue", s.Continue, &p.Continue},
		{"preempt", s.Preempt, &p.Preempt}, {"kill", s.Kill, &p.Kill}} {
		if own.src == "" {
			continue
		}
		e, err := classad.ParseExpr(own.src)
		if err != nil {
			return Policy{}, fmt.Errorf("%s: %w: %w", own.name, roost.BadConfig, err)
		}
		*own.to = append(*own.to, ConditionTerm{e, "the node file"})
		p.NeedsGuard = p.NeedsGuard || dependsOnGuard(e)
	}
	for _, d := range []struct {
		given time.Duration
		to    *time.Duration
	}{{s.StartAfter, &p.StartDelay}, {s.ResumeAfter, &p.ResumeDelay}, {s.LeaveAfter, &p.VacateDelay},
		{s.Vacate, &p.VacateTime}} {
		if d.given > 0 {
			*d.to = d.given
		}
	}
	p.ShortStartDelay = min(p.ShortStartDelay, p.StartDelay)
	if s.LeaveAfter > 0 {
		p.ShortVacateDelay = s.LeaveAfter
	}
	return p, nil
}
