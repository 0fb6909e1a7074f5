package submit

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/startd/owner"
)

// Visits is how the owner of a machine comes and goes. Where both times and hours are given he comes as the times say, and is there only within the hours. The
// zero value: he never comes.
type Visits struct {
	Away    time.Duration // from his going until he comes again, on the mean; 0: he is there all the time
	Present time.Duration // for which he stays, on the mean; 0 where Away is
	Hours   []owner.Hours // by the clock on the wall; none: whenever
}

// leastVisit is the shortest mean of how long an owner is there, and is away.
const leastVisit = time.Second

// policySettings are those of a startd block in a node file (package config) that say when a machine is lent.
var policySettings = []string{"policy", "start", "suspend", "continue", "preempt", "kill", "start_after", "resume_after", "leave_after", "vacate_time"}

// lend reads when machines of a kind are lent, and how their owners come and go.
func (m *mixer) lend(p *parser, b *hclsyntax.Block, k *Machines) {
	before := len(p.diags)
	policy := p.policy(b)
	asks := policy.Guarded || len(p.diags) > before
	seen := false
	for _, inner := range b.Body.Blocks {
		if inner.Type != "owner" {
			continue
		}
		if seen {
			p.report(problem(inner.TypeRange.Ptr(), "there are two blocks called owner", "Write all that is to be said of the owner into one."))
			continue
		}
		seen = true
		if p.noLabels(inner, "owner { … }") && p.onlySettings(inner, "an owner", []string{"away", "present", "hours"}, nil) {
			p.visits(inner, &k.Visits)
		}
		if !asks {
			p.report(problem(inner.TypeRange.Ptr(), "these machines do not ask whether their owner is there", "Say when they are lent, as in policy = \"desktop\", or leave the block away."))
		}
	}
	for _, name := range policySettings {
		if b.Body.Attributes[name] != nil {
			k.Owner = &policy
		}
	}
}

// policy reads a policy, in the words of a node file.
func (p *parser) policy(b *hclsyntax.Block) owner.Policy {
	var s owner.Settings
	p.text(b, "policy", &s.Preset, func(text string) (string, string) {
		if _, ok := owner.Preset(text); !ok || text == "" {
			return "there is no such policy", fmt.Sprintf("It is %q. There are %s.", text, owner.Presets())
		}
		return "", ""
	})
	for _, e := range []struct {
		name string
		to   *string
	}{{"start", &s.Start}, {"suspend", &s.Suspend}, {"continue", &s.Continue}, {"preempt", &s.Preempt}, {"kill", &s.Kill}} {
		p.text(b, e.name, e.to, func(text string) (string, string) {
			if _, err := classad.ParseExpr(text); err != nil {
				return e.name + " is no expression", fmt.Sprintf("%v.", err)
			}
			for _, f := range owner.Examine(e.name, text, nil) {
				if !f.Doubt {
					return e.name + ": " + f.Cause, "Machines that are simulated have no attributes of their own: " + f.Cure + "."
				}
			}
			return "", ""
		})
	}
	p.span(b, "start_after", &s.StartAfter)
	p.span(b, "resume_after", &s.ResumeAfter)
	p.span(b, "leave_after", &s.LeaveAfter)
	p.span(b, "vacate_time", &s.Vacate)
	if a := b.Body.Attributes["resume_after"]; a != nil && s.ResumeAfter > 0 && s.ResumeAfter < owner.LeastResume {
		p.report(problem(a.Expr.Range().Ptr(), "resume_after is too short", fmt.Sprintf("It is less than %v, in which a key may go unheard.", owner.LeastResume)))
	}
	policy, err := owner.Make(s)
	if err != nil {
		panic(err) // all of it was looked at
	}
	return policy
}

// text reads a setting that is a text; check says what is not right with it, and how to mend that.
func (p *parser) text(b *hclsyntax.Block, name string, to *string, check func(text string) (summary, detail string)) {
	p.quantity(b, name, func(v cty.Value) (string, error) {
		if v.IsNull() || v.Type() != cty.String {
			return "", &wrong{name + " is not a text", fmt.Sprintf("It is %s. Write it in quotes.", describe(v))}
		}
		if summary, detail := check(v.AsString()); summary != "" {
			return "", &wrong{summary, detail}
		}
		return v.AsString(), nil
	}, func(text string) { *to = text })
}

// visits reads how an owner comes and goes.
func (p *parser) visits(b *hclsyntax.Block, to *Visits) {
	before := len(p.diags)
	p.span(b, "away", &to.Away)
	p.span(b, "present", &to.Present)
	p.hours(b, &to.Hours)
	if len(p.diags) > before {
		return
	}
	const both = "Write both, as in\n\n  away = \"2h\"\n  present = \"20m\"\n"
	for _, one := range []struct {
		name, other string
		is          time.Duration
	}{{"away", "present", to.Away}, {"present", "away", to.Present}} {
		a := b.Body.Attributes[one.name]
		switch {
		case a != nil && b.Body.Attributes[one.other] == nil:
			p.report(problem(a.NameRange.Ptr(), fmt.Sprintf("there is %s, and no %s", one.name, one.other), "An owner is there for a while, and then away for another. "+both))
		case a != nil && one.is < leastVisit:
			p.report(problem(a.Expr.Range().Ptr(), one.name+" is too short", fmt.Sprintf("It is %v; write %v at least.", one.is, leastVisit)))
		}
	}
	if len(b.Body.Attributes) == 0 {
		p.report(problem(b.TypeRange.Ptr(), "it is not said when the owner comes", "Write hours = [\"Mon-Fri 08:00-18:00\"], or how long he is away and present. "+both))
	}
}

// hours reads a list of times of the week.
func (p *parser) hours(b *hclsyntax.Block, to *[]owner.Hours) {
	const cure = `Write them as hours = ["Mon-Fri 08:00-18:00"].`
	p.quantity(b, "hours", func(v cty.Value) (string, error) {
		if ty := v.Type(); v.IsNull() || !ty.IsTupleType() && !ty.IsListType() || v.LengthInt() == 0 {
			return "", &wrong{"hours is no list of times", fmt.Sprintf("It is %s. %s", describe(v), cure)}
		}
		for _, one := range v.AsValueSlice() {
			if one.IsNull() || one.Type() != cty.String {
				return "", &wrong{"hours is no list of times", fmt.Sprintf("In it there is %s. %s", describe(one), cure)}
			}
			h, err := owner.ParseHours(one.AsString())
			if err != nil {
				return "", &wrong{"this is no time of the week", err.Error() + "."}
			}
			*to = append(*to, h)
		}
		return "", nil
	}, func(string) {})
}
