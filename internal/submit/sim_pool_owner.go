package submit

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/startd/desktop/policy"
)

// OwnerSchedule describes how the owner of a machine comes and goes. With both times and
// hours the owner follows the times, but is present only within the hours. The zero value
// is an owner who never comes.
type OwnerSchedule struct {
	MeanAway    time.Duration        // from his going until he comes again, on the mean; 0: he is there all the time
	MeanPresent time.Duration        // for which he stays, on the mean; 0 where MeanAway is
	Hours       []policy.WeeklyHours // by the clock on the wall; none: whenever
}

// minVisit is the shortest mean of an owner's presence and absence.
const minVisit = time.Second

// policySettings are the settings of a startd block in a node file (package config) that
// form the owner policy.
var policySettings = []string{"policy", "start", "suspend", "continue", "preempt", "kill", "start_after",
	"resume_after", "leave_after", "vacate_time"}

// readAvailability reads the owner policy of machines, and how their owners come and go.
func (m *simPoolParser) readAvailability(p *fileParser, b *hclsyntax.Block, k *SimMachines) {
	before := len(p.diags)
	policy := p.readPolicy(b)
	asks := policy.NeedsGuard || len(p.diags) > before
	seen := false
	for _, inner := range b.Body.Blocks {
		if inner.Type != "owner" {
			continue
		}
		if seen {
			p.report(newDiagnostic(inner.TypeRange.Ptr(), "there are two blocks called owner",
				"Write all that is to be said of the owner into one."))
			continue
		}
		seen = true
		if p.refuseLabels(inner, "owner { … }") &&
			p.refuseUnknown(inner, "an owner", []string{"away", "present", "hours"}, nil) {
			p.readOwnerSchedule(inner, &k.Schedule)
		}
		if !asks {
			p.report(newDiagnostic(inner.TypeRange.Ptr(), "these machines do not ask whether their owner is there",
				"Say when they are lent, as in policy = \"desktop\", or leave the block out."))
		}
	}
	for _, name := range policySettings {
		if b.Body.Attributes[name] != nil {
			k.Owner = &policy
		}
	}
}

// readPolicy reads an owner policy, with the settings of a node file.
func (p *fileParser) readPolicy(b *hclsyntax.Block) policy.Policy {
	var s policy.PolicySettings
	p.readText(b, "policy", &s.Preset, func(text string) (string, string) {
		if _, ok := policy.PresetPolicy(text); !ok || text == "" {
			return "there is no such policy", fmt.Sprintf("It is %q. There are %s.", text, policy.PresetNames())
		}
		return "", ""
	})
	for _, e := range []struct {
		name string
		to   *string
	}{{"start", &s.Start}, {"suspend", &s.Suspend}, {"continue", &s.Continue}, {"preempt", &s.Preempt},
		{"kill", &s.Kill}} {
		p.readText(b, e.name, e.to, func(text string) (string, string) {
			if _, err := classad.ParseExpr(text); err != nil {
				return e.name + " is no expression", fmt.Sprintf("%v.", err)
			}
			for _, f := range policy.LintExpression(e.name, text, nil) {
				if !f.MaybeIntended {
					return e.name + ": " + f.Cause, "Machines that are simulated have no attributes of their own: " +
						f.Cure + "."
				}
			}
			return "", ""
		})
	}
	p.readDuration(b, "start_after", &s.StartAfter)
	p.readDuration(b, "resume_after", &s.ResumeAfter)
	p.readDuration(b, "leave_after", &s.LeaveAfter)
	p.readDuration(b, "vacate_time", &s.Vacate)
	if a := b.Body.Attributes["resume_after"]; a != nil && s.ResumeAfter > 0 && s.ResumeAfter < policy.MinResumeDelay {
		p.report(newDiagnostic(a.Expr.Range().Ptr(), "resume_after is too short",
			fmt.Sprintf("It is less than %v, in which a key press may be missed.", policy.MinResumeDelay)))
	}
	policy, err := policy.NewPolicy(s)
	if err != nil {
		panic(err) // everything was checked
	}
	return policy
}

// readText reads a setting that is a text. check returns what is wrong with it, and how
// to fix that.
func (p *fileParser) readText(b *hclsyntax.Block, name string, to *string,
	check func(text string) (summary, detail string)) {
	p.readQuantity(b, name, func(v cty.Value) (string, error) {
		if v.IsNull() || v.Type() != cty.String {
			return "", &valueError{name + " is not a text",
				fmt.Sprintf("It is %s. Write it in quotes.", describeValue(v))}
		}
		if summary, detail := check(v.AsString()); summary != "" {
			return "", &valueError{summary, detail}
		}
		return v.AsString(), nil
	}, func(text string) { *to = text })
}

// readOwnerSchedule reads how an owner comes and goes.
func (p *fileParser) readOwnerSchedule(b *hclsyntax.Block, to *OwnerSchedule) {
	before := len(p.diags)
	p.readDuration(b, "away", &to.MeanAway)
	p.readDuration(b, "present", &to.MeanPresent)
	p.readHours(b, &to.Hours)
	if len(p.diags) > before {
		return
	}
	const both = "Write both, as in\n\n  away = \"2h\"\n  present = \"20m\"\n"
	for _, one := range []struct {
		name, other string
		is          time.Duration
	}{{"away", "present", to.MeanAway}, {"present", "away", to.MeanPresent}} {
		a := b.Body.Attributes[one.name]
		switch {
		case a != nil && b.Body.Attributes[one.other] == nil:
			p.report(newDiagnostic(a.NameRange.Ptr(), fmt.Sprintf("there is %s, and no %s", one.name, one.other),
				"An owner is there for a while, and then away for another. "+both))
		case a != nil && one.is < minVisit:
			p.report(newDiagnostic(a.Expr.Range().Ptr(), one.name+" is too short",
				fmt.Sprintf("It is %v; write %v at least.", one.is, minVisit)))
		}
	}
	if len(b.Body.Attributes) == 0 {
		p.report(newDiagnostic(b.TypeRange.Ptr(), "it is not said when the owner comes",
			"Write hours = [\"Mon-Fri 08:00-18:00\"], or how long the owner is away and present. "+both))
	}
}

// readHours reads a list of times of the week.
func (p *fileParser) readHours(b *hclsyntax.Block, to *[]policy.WeeklyHours) {
	const hint = `Write them as hours = ["Mon-Fri 08:00-18:00"].`
	p.readQuantity(b, "hours", func(v cty.Value) (string, error) {
		if ty := v.Type(); v.IsNull() || !ty.IsTupleType() && !ty.IsListType() || v.LengthInt() == 0 {
			return "", &valueError{"hours is no list of times", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
		}
		for _, one := range v.AsValueSlice() {
			if one.IsNull() || one.Type() != cty.String {
				return "", &valueError{"hours is no list of times",
					fmt.Sprintf("In it there is %s. %s", describeValue(one), hint)}
			}
			h, err := policy.ParseHours(one.AsString())
			if err != nil {
				return "", &valueError{"this is no time of the week", err.Error() + "."}
			}
			*to = append(*to, h)
		}
		return "", nil
	}, func(string) {})
}
