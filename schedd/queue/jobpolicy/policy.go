package jobpolicy

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// The evaluation of a condition is bounded more narrowly than others: there is one for
// each task, and the schedd's loop makes them.
const (
	maxSteps = 2000
	maxText  = 64 << 10
)

// maxReason bounds the reason that a user gives, in bytes.
const maxReason = 1024

// Policy is what a user wants done with the tasks of a job under conditions.
type Policy struct{ conditions map[string]condition }

type condition struct {
	expr   classad.Expr
	text   string
	reason string // of its user
}

// Read reads the conditions of an ad; nil if it has none. An error names the attribute.
func Read(ad *classad.Ad) (*Policy, error) {
	var p *Policy
	for _, c := range roost.PolicyConditions() {
		e, ok := ad.Lookup(c.Attr)
		if !ok {
			continue
		}
		if p == nil {
			p = &Policy{map[string]condition{}}
		}
		one := condition{expr: e, text: e.String()}
		if reason, ok := ad.Lookup(c.ReasonAttr); ok && c.ReasonAttr != "" {
			if one.reason, ok = ad.Str(c.ReasonAttr); !ok || len(one.reason) > maxReason {
				return nil, fmt.Errorf("attribute %s: %w: %v is no text of at most %d bytes", c.ReasonAttr,
					roost.Invalid, reason, maxReason)
			}
		}
		p.conditions[c.Attr] = one
	}
	return p, nil
}

// Action is what is to be done with a task.
type Action uint8

// The actions.
const (
	NoAction Action = iota
	Hold
	Release
	Remove
	Vacate
	RunAgain
	Leave // it has ended, however it ended
)

// Verdict is an action, and the sentence that says why.
type Verdict struct {
	Action Action
	Reason string
}

// HasPeriodic reports whether a condition is looked at while a task has not ended.
func (p *Policy) HasPeriodic() bool {
	for _, attr := range []string{roost.AttrPeriodicHold, roost.AttrPeriodicRelease, roost.AttrPeriodicRemove,
		roost.AttrPeriodicVacate} {
		if _, ok := p.conditions[attr]; ok {
			return true
		}
	}
	return false
}

// HasOnExit reports whether a condition is looked at when a task has ended.
func (p *Policy) HasOnExit() bool {
	_, hold := p.conditions[roost.AttrOnExitHold]
	_, remove := p.conditions[roost.AttrOnExitRemove]
	return hold || remove
}

// Judge evaluates the conditions of a job, for one task after the other.
type Judge struct {
	policy *Policy
	ad     *classad.Ad // of the job, with what is known of a task
	env    classad.EvalEnv
}

// Judge returns a judge for the tasks of a job. The ad is the job's.
func (p *Policy) Judge(ad *classad.Ad, now time.Time) *Judge {
	facts := ad.Copy()
	if labels, ok := ad.Sub(roost.AttrLabels); ok {
		for name := range labels.All() {
			if _, taken := facts.Lookup(name); !taken {
				addLabel(facts, labels, name)
			}
		}
	}
	facts.SetInt("ServerTime", now.Unix())
	facts.SetInt("CurrentTime", now.Unix())
	return &Judge{p, facts, classad.EvalEnv{Now: now, Steps: maxSteps, Text: maxText}}
}

// addLabel adds a label as an attribute. A label is a text, and one that was a number or
// a condition in a submit description is that again.
func addLabel(facts, labels *classad.Ad, name string) {
	text, ok := labels.Str(name)
	if !ok {
		return
	}
	if e, err := classad.ParseExpr(text); err == nil {
		if v := classad.Eval(e, nil, nil, nil); v.Kind() != classad.Undefined && v.Kind() != classad.Error {
			facts.SetValue(name, v)
			return
		}
	}
	facts.SetString(name, text)
}

// Periodic says what is to be done with a task that has not ended. What its user or an
// administrator holds is not released, nor what somebody has to look at first.
func (j *Judge) Periodic(f Facts) Verdict {
	f.addTo(j.ad)
	held := f.State == roost.Held
	for _, step := range []struct {
		attr   string
		action Action
		wanted bool
	}{
		{roost.AttrPeriodicRemove, Remove, true},
		{roost.AttrPeriodicHold, Hold, !held},
		{roost.AttrPeriodicRelease, Release, held && !f.HeldByUser && !f.Uncertain},
		{roost.AttrPeriodicVacate, Vacate, f.State.IsActive()},
	} {
		if c, ok := j.policy.conditions[step.attr]; ok && step.wanted && j.isTrue(c) {
			return Verdict{step.action, c.sentence(step.attr, "true")}
		}
	}
	return Verdict{}
}

// AtExit says what is to be done with a task that has ended by itself.
func (j *Judge) AtExit(f Facts) Verdict {
	f.addTo(j.ad)
	if c, ok := j.policy.conditions[roost.AttrOnExitHold]; ok && j.isTrue(c) {
		return Verdict{Hold, c.sentence(roost.AttrOnExitHold, "true")}
	}
	c, ok := j.policy.conditions[roost.AttrOnExitRemove]
	if !ok {
		return Verdict{}
	}
	switch leaves, known := j.value(c).Truth(); {
	case !known:
		return Verdict{Hold, c.sentence(roost.AttrOnExitRemove, fmt.Sprintf("%v, and not true or false", j.value(c)))}
	case leaves:
		return Verdict{Leave, ""}
	}
	return Verdict{RunAgain, c.sentence(roost.AttrOnExitRemove, "false")}
}

func (j *Judge) value(c condition) classad.Value { return classad.Eval(c.expr, j.ad, nil, &j.env) }

// isTrue reports whether a condition is true. What is neither true nor false is not.
func (j *Judge) isTrue(c condition) bool {
	is, known := j.value(c).Truth()
	return known && is
}

func (c condition) sentence(attr, value string) string {
	if c.reason != "" {
		return c.reason
	}
	for _, known := range roost.PolicyConditions() {
		if known.Attr == attr {
			attr = known.Setting
		}
	}
	return fmt.Sprintf("%s: %s is %s", attr, c.text, value)
}
