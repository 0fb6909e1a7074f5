package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/startd/desktop/policy"
)

// OwnerPolicy configures when a machine runs tasks, beside Start and Rank.
type OwnerPolicy struct {
	Preset string // "always" if empty
	// ClassAd expressions over MY machine and TARGET job; empty: only the preset's
	Suspend, Continue, Preempt, Kill string
	StartAfter                       time.Duration // 0: as in the preset
	ResumeAfter, LeaveAfter          time.Duration
	Vacate                           time.Duration // how long vacating may take
}

// OwnerPolicy returns the policy of a startd. The error is of kind roost.BadConfig;
// settings that Load returned give none.
func (d *StartdSettings) OwnerPolicy() (policy.Policy, error) {
	return policy.NewPolicy(d.policySettings())
}

// HasOwnerPolicy reports whether a startd has an owner policy, beside its start
// expression.
func (d *StartdSettings) HasOwnerPolicy() bool {
	return d.Policy != (OwnerPolicy{}) && d.Policy != (OwnerPolicy{Preset: "always"}) || d.NeedsGuard()
}

// NeedsGuard reports whether a startd needs the guard of its host, because its policy
// uses what only the guard observes.
func (d *StartdSettings) NeedsGuard() bool {
	p, err := d.OwnerPolicy()
	return err != nil || p.NeedsGuard
}

// NeedsGuard reports whether one of the node's startds needs a guard.
func (n *Node) NeedsGuard() bool {
	return slices.ContainsFunc(n.Startds, func(d StartdSettings) bool { return d.NeedsGuard() })
}

func (d *StartdSettings) policySettings() policy.PolicySettings {
	p := d.Policy
	s := policy.PolicySettings{
		Preset: p.Preset, Start: d.Start, Suspend: p.Suspend, Continue: p.Continue, Preempt: p.Preempt, Kill: p.Kill,
		StartAfter: p.StartAfter, ResumeAfter: p.ResumeAfter, LeaveAfter: p.LeaveAfter, Vacate: p.Vacate,
	}
	if s.Start == "true" {
		s.Start = "" // the default
	}
	return s
}

// readPolicy reads the policy settings of a startd block. Its start was read before.
func (s *blockReader) readPolicy(d *StartdSettings) {
	to := &d.Policy
	s.readSetting("policy", `"desktop"`, func(text string) error {
		if _, ok := policy.PresetPolicy(text); !ok || text == "" {
			return fmt.Errorf("%q is none of %s", text, policy.PresetNames())
		}
		to.Preset = text
		return nil
	})
	s.readPolicyExpression("start", &d.Start, d.Attributes)
	s.readPolicyExpression("suspend", &to.Suspend, d.Attributes)
	s.readPolicyExpression("continue", &to.Continue, d.Attributes)
	s.readPolicyExpression("preempt", &to.Preempt, d.Attributes)
	s.readPolicyExpression("kill", &to.Kill, d.Attributes)
	s.readPolicyExpression("rank", &d.Rank, d.Attributes)
	s.readPositive("start_after", `"10m"`, &to.StartAfter)
	s.readSetting("resume_after", `"5m"`, func(text string) (err error) {
		if to.ResumeAfter, err = roost.ParseDuration(text); err == nil && to.ResumeAfter < policy.MinResumeDelay {
			err = fmt.Errorf("it is less than %v, in which a key press may be missed", policy.MinResumeDelay)
		}
		return err
	})
	s.readPositive("leave_after", `"10m"`, &to.LeaveAfter)
	s.readPositive("vacate_time", `"10m"`, &to.Vacate)
}

// readPolicyExpression reads an expression of a policy and reports parts of it that
// cannot be intended.
func (s *blockReader) readPolicyExpression(name string, to *string, attributes map[string]string) {
	s.readSetting(name, policyExamples[name], func(text string) error {
		_, err := classad.ParseExpr(text)
		*to = text
		return err
	})
	attr, ok := s.body.Attributes[name]
	if !ok || *to == "" {
		return
	}
	for _, f := range policy.LintExpression(name, *to, slices.Sorted(maps.Keys(attributes))) {
		at := wordPosition(attr.Expr, s.problemList, f.Word)
		if f.MaybeIntended {
			s.addWarning(at, f.Cure, "%s: %s", name, f.Cause)
		} else {
			s.addProblem(at, f.Cure, "%s: %s", name, f.Cause)
		}
	}
}

var policyExamples = map[string]string{
	"start": `"TARGET.Walltime < 3600"`, "rank": `"TARGET.AccountingGroup == \"optics\" ? 10 : 0"`,
	"suspend": `"KeyboardIdle < 60"`, "continue": `"KeyboardIdle > 300"`,
	"preempt": `"ActivityTimer > 600"`, "kill": `"ActivityTimer > 60"`,
}

// wordPosition returns the position of a word in an expression. If the expression is not
// one text on one line, it returns the expression's position.
func wordPosition(e hclsyntax.Expression, p *problemList, word string) hcl.Range {
	at := e.Range()
	if word == "" || at.Start.Line != at.End.Line || at.Start.Line > len(p.lines) {
		return at
	}
	line := string(p.lines[at.Start.Line-1])
	from := lineStartOffset(p, at.Start.Line)
	begin, end := at.Start.Byte-from, min(at.End.Byte-from, len(line))
	if begin < 0 || begin > end {
		return at
	}
	i := strings.Index(strings.ToLower(line[begin:end]), strings.ToLower(word))
	if i < 0 {
		return at
	}
	column := at.Start.Column + len([]rune(line[begin:begin+i]))
	start := hcl.Pos{Line: at.Start.Line, Column: column, Byte: at.Start.Byte + i}
	return hcl.Range{Filename: at.Filename, Start: start,
		End: hcl.Pos{Line: start.Line, Column: column + len([]rune(word)), Byte: start.Byte + len(word)}}
}

func lineStartOffset(p *problemList, line int) int {
	n := 0
	for _, l := range p.lines[:line-1] {
		n += len(l) + 1
	}
	return n
}

func (w fileWriter) writePolicy(p OwnerPolicy) {
	w.writeText("policy", p.Preset)
	w.writeText("suspend", p.Suspend)
	w.writeText("continue", p.Continue)
	w.writeText("preempt", p.Preempt)
	w.writeText("kill", p.Kill)
	w.writeDuration("start_after", p.StartAfter)
	w.writeDuration("resume_after", p.ResumeAfter)
	w.writeDuration("leave_after", p.LeaveAfter)
	w.writeDuration("vacate_time", p.Vacate)
}
