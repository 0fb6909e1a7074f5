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
	"github.com/roost-batch/roost/startd/owner"
)

// Policy says when a machine is lent, besides its Start and Rank.
type Policy struct {
	Preset                           string        // "always" if empty
	Suspend, Continue, Preempt, Kill string        // ClassAd expressions over MY machine and TARGET job; empty: the preset's alone
	StartAfter                       time.Duration // 0: as the preset has it; so the others
	ResumeAfter, LeaveAfter          time.Duration
	Vacate                           time.Duration // how long leaving may take
}

// OwnerPolicy is the policy of an execute node. The error is of kind roost.BadConfig; of one that Load has returned there is none.
func (d *Startd) OwnerPolicy() (owner.Policy, error) { return owner.Make(d.settings()) }

// Lent reports whether an execute node has a policy of its own, beside what its start asks of jobs.
func (d *Startd) Lent() bool {
	return d.Policy != (Policy{}) && d.Policy != (Policy{Preset: "always"}) || d.Guarded()
}

// Guarded reports whether an execute node needs the guard of its host, because its policy asks for what only that one sees.
func (d *Startd) Guarded() bool {
	p, err := d.OwnerPolicy()
	return err != nil || p.Guarded
}

// Guarded reports whether one of the node's startds needs a guard.
func (n *Node) Guarded() bool {
	return slices.ContainsFunc(n.Startds, func(d Startd) bool { return d.Guarded() })
}

func (d *Startd) settings() owner.Settings {
	p := d.Policy
	s := owner.Settings{
		Preset: p.Preset, Start: d.Start, Suspend: p.Suspend, Continue: p.Continue, Preempt: p.Preempt, Kill: p.Kill,
		StartAfter: p.StartAfter, ResumeAfter: p.ResumeAfter, LeaveAfter: p.LeaveAfter, Vacate: p.Vacate,
	}
	if s.Start == "true" {
		s.Start = "" // what fill puts in
	}
	return s
}

// readPolicy reads the settings of a policy that stand in a startd block. Its start was read before.
func (s *section) readPolicy(d *Startd) {
	to := &d.Policy
	s.set("policy", `"desktop"`, func(text string) error {
		if _, ok := owner.Preset(text); !ok || text == "" {
			return fmt.Errorf("%q is none of %s", text, owner.Presets())
		}
		to.Preset = text
		return nil
	})
	s.policyExpression("start", &d.Start, d.Attributes)
	s.policyExpression("suspend", &to.Suspend, d.Attributes)
	s.policyExpression("continue", &to.Continue, d.Attributes)
	s.policyExpression("preempt", &to.Preempt, d.Attributes)
	s.policyExpression("kill", &to.Kill, d.Attributes)
	s.policyExpression("rank", &d.Rank, d.Attributes)
	s.positive("start_after", `"10m"`, &to.StartAfter)
	s.set("resume_after", `"5m"`, func(text string) (err error) {
		if to.ResumeAfter, err = roost.ParseDuration(text); err == nil && to.ResumeAfter < owner.LeastResume {
			err = fmt.Errorf("it is less than %v, in which a key may go unheard", owner.LeastResume)
		}
		return err
	})
	s.positive("leave_after", `"10m"`, &to.LeaveAfter)
	s.positive("vacate_time", `"10m"`, &to.Vacate)
}

// policyExpression reads an expression of a policy and says what in it can never be meant.
func (s *section) policyExpression(name string, to *string, attributes map[string]string) {
	s.set(name, policyExamples[name], func(text string) error {
		_, err := classad.ParseExpr(text)
		*to = text
		return err
	})
	attr, ok := s.body.Attributes[name]
	if !ok || *to == "" {
		return
	}
	for _, f := range owner.Examine(name, *to, slices.Sorted(maps.Keys(attributes))) {
		at := within(attr.Expr, s.problems, f.Word)
		if f.Doubt {
			s.warn(at, f.Cure, "%s: %s", name, f.Cause)
		} else {
			s.add(at, f.Cure, "%s: %s", name, f.Cause)
		}
	}
}

var policyExamples = map[string]string{
	"start": `"TARGET.Walltime < 3600"`, "rank": `"TARGET.AccountingGroup == \"optics\" ? 10 : 0"`, "suspend": `"KeyboardIdle < 60"`, "continue": `"KeyboardIdle > 300"`,
	"preempt": `"ActivityTimer > 600"`, "kill": `"ActivityTimer > 60"`,
}

// within is where a word stands in an expression that was written as one text on one line, or else where the expression does.
func within(e hclsyntax.Expression, p *problems, word string) hcl.Range {
	at := e.Range()
	if word == "" || at.Start.Line != at.End.Line || at.Start.Line > len(p.lines) {
		return at
	}
	line := string(p.lines[at.Start.Line-1])
	from := lineStart(p, at.Start.Line)
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
	return hcl.Range{Filename: at.Filename, Start: start, End: hcl.Pos{Line: start.Line, Column: column + len([]rune(word)), Byte: start.Byte + len(word)}}
}

func lineStart(p *problems, line int) int {
	n := 0
	for _, l := range p.lines[:line-1] {
		n += len(l) + 1
	}
	return n
}

func (w writer) policy(p Policy) {
	w.text("policy", p.Preset)
	w.text("suspend", p.Suspend)
	w.text("continue", p.Continue)
	w.text("preempt", p.Preempt)
	w.text("kill", p.Kill)
	w.duration("start_after", p.StartAfter)
	w.duration("resume_after", p.ResumeAfter)
	w.duration("leave_after", p.LeaveAfter)
	w.duration("vacate_time", p.Vacate)
}
