package ledger

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/script"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// TestStories runs the scripts in testdata. Each begins with a new ledger at
// 2026-01-01T00:00:00Z in which root's commands are trusted. Commands:
//
//	lead NAME
//	tick DURATION          an empty entry later; the duration may be negative
//	deposed                an entry of the epoch before
//	as WHO                 the user of the next commands; root for a trusted one
//	set KIND, fresh KIND, unsure KIND, whole KIND     with the object as input
//	remove KIND NAME, reset NAME
//	hold SUBMITTER CORES
//	take-over SUBMITTER PRIORITY USED   an account of an hour ago from before the ledger
//	grant ID UNITS MACHINE [until]    until: with concurrency limits and a claim deadline
//	ended ID...            the outcome of grants with concurrency limits
//	evict ID JOB...        a grant for which tasks of these jobs are evicted
//	apart TASK MACHINE DURATION
//	show [KIND]            the objects; without a kind everything else
//	quotas USER GROUP BAND [DURATION from now]
//	share SUBMITTER
//
// It prints what is refused. After each step the test saves and loads the ledger, which
// must stay the same.
func TestStories(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func(script.ScriptCommand) string {
		p := &scriptRunner{t: t, ledger: New(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano(),
			who: "root"}
		p.applyEntry(LogEntry{Lead: "one"})
		return p.runCommand
	})
}

type scriptRunner struct {
	t          *testing.T
	ledger     *Ledger
	now        int64
	who        string
	baseDigest []byte // digest of the objects that were last shown
}

// applyEntry encodes and decodes an entry as the log does, and applies it.
func (p *scriptRunner) applyEntry(e LogEntry) string {
	if e.At = p.now; e.Lead == "" && e.Epoch == 0 {
		e.Epoch, _ = p.ledger.Epoch()
	}
	read, err := Decode(e.Encode(nil))
	if err != nil {
		p.t.Fatal(err)
	}
	result := p.ledger.Apply(read)
	if result.Err != nil {
		return result.Err.Error()
	}
	var refused []string
	for _, err := range result.Commands {
		if err != nil {
			refused = append(refused, err.Error())
		}
	}
	return strings.Join(refused, "\n")
}

func (p *scriptRunner) runCommand(s script.ScriptCommand) string {
	defer p.checkSameAfterSave()
	duration := func(i int) time.Duration {
		d, err := time.ParseDuration(s.Args[i])
		if err != nil {
			p.t.Fatal(err)
		}
		return d
	}
	whole := func(i int) int {
		n, err := strconv.Atoi(s.Args[i])
		if err != nil {
			p.t.Fatal(err)
		}
		return n
	}
	switch s.Command {
	case "lead":
		return p.applyEntry(LogEntry{Lead: s.Args[0]})
	case "tick":
		p.now += int64(duration(0))
		return p.applyEntry(LogEntry{})
	case "deposed":
		epoch, _ := p.ledger.Epoch()
		ann := UsageUpdate{Submitter: fairshare.Submitter{Owner: "ann"}, Cores: 1000}
		return p.applyEntry(LogEntry{Epoch: epoch - 1, Holds: []UsageUpdate{ann}})
	case "as":
		p.who = s.Args[0]
		return ""
	case "look":
		p.baseDigest = p.ledger.Digest(ObjectKind(s.Args[0]))
		return ""
	case "set", "fresh", "unsure", "whole", "remove", "reset", "seen":
		return p.commandOf(s)
	case "hold":
		cores, err := strconv.ParseFloat(s.Args[1], 64)
		if err != nil {
			p.t.Fatal(err)
		}
		who := p.ledger.ParseSubmitter(s.Args[0])
		return p.applyEntry(LogEntry{Holds: []UsageUpdate{{Submitter: who, Cores: cores}}})
	case "elsewhere":
		who := p.ledger.ParseSubmitter(s.Args[0])
		use := p.ledger.Accountant().Account(p.ledger.Now(), who).Use
		return p.applyEntry(LogEntry{Holds: []UsageUpdate{{Submitter: who, Cores: use, Elsewhere: float64(whole(1))}}})
	case "take-over":
		a := fairshare.SubmitterAccount{Submitter: p.ledger.ParseSubmitter(s.Args[0]), Real: float64(whole(1)),
			Used: float64(whole(2)), At: p.now - int64(time.Hour)}
		return p.applyEntry(LogEntry{Accounts: []fairshare.SubmitterAccount{a}})
	case "grant":
		g := RecordedGrant{ID: uint64(whole(0)), Units: whole(1), Machine: s.Args[2],
			Resources: roost.Resources{CPU: 1000}}
		if len(s.Args) > 3 {
			g.ClaimBy = int64(time.Hour)
		}
		return p.applyEntry(LogEntry{Grants: []RecordedGrant{g}})
	case "evict":
		return p.applyEntry(LogEntry{Grants: []RecordedGrant{{ID: uint64(whole(0)), Units: 1, Machine: "n1",
			Resources: roost.Resources{CPU: 1000}, Evicted: s.Args[1:]}}})
	case "ended":
		e := LogEntry{}
		for i := range s.Args {
			e.Ended = append(e.Ended, uint64(whole(i)))
		}
		return p.applyEntry(e)
	case "apart":
		return p.applyEntry(LogEntry{Pairs: []AvoidPair{{s.Args[0], s.Args[1], time.Unix(0, p.now).Add(duration(2)),
			"it failed"}}})
	case "quotas":
		at := p.ledger.Now()
		if len(s.Args) > 3 {
			at = at.Add(duration(3))
		}
		return p.quotas(at, s.Args)
	case "share":
		who := p.ledger.ParseSubmitter(s.Args[0])
		floor, ceiling := p.ledger.FloorCeiling(who)
		text := fmt.Sprintf("group %q, user %q: effective %.6g, used %.6g core-seconds, floor %v, ceiling %v",
			who.Group, who.Owner,
			p.ledger.Accountant().EffectivePriority(p.ledger.Now(), who),
			p.ledger.Accountant().CoreSeconds(p.ledger.Now(), who), floor, ceiling)
		if used := p.ledger.Accountant().Account(p.ledger.Now(), who).UsedElsewhere; used > 0 {
			text += fmt.Sprintf(", elsewhere %.6g core-seconds", used)
		}
		return text
	case "show":
		if len(s.Args) > 0 {
			return p.objects(ObjectKind(s.Args[0]))
		}
		return p.otherText()
	}
	p.t.Fatalf("unknown command %s", s.Command)
	return ""
}

func (p *scriptRunner) commandOf(s script.ScriptCommand) string {
	c := AdminCommand{Who: p.who, Trusted: p.who == "root", Verb: VerbSet, Whole: s.Command == "whole",
		Fresh: s.Command == "fresh", Unsure: s.Command == "unsure"}
	if s.Command == "seen" {
		c.Basis = p.baseDigest
	}
	switch s.Command {
	case "remove":
		c.Verb, c.Kind, c.Name = VerbRemove, ObjectKind(s.Args[0]), s.Args[1]
	case "reset":
		c.Verb, c.Kind, c.Name = VerbReset, KindSubmitter, s.Args[0]
	default:
		c.Kind, c.Object = ObjectKind(s.Args[0]), []byte(strings.Join(s.Input, "\n"))
	}
	checked := ""
	p.ledger.advanceClock(p.now)
	if err := p.ledger.Check(&c); err != nil {
		checked = err.Error()
	}
	got := p.applyEntry(LogEntry{Commands: []AdminCommand{c}})
	if got != checked {
		p.t.Fatalf("Check says %q, and Apply %q", checked, got)
	}
	return got
}

func (p *scriptRunner) quotas(at time.Time, args []string) string {
	band, err := roost.ParsePriorityBand(args[2])
	if err != nil {
		p.t.Fatal(err)
	}
	var b strings.Builder
	for _, q := range p.ledger.QuotasFor(at, args[0], strings.Trim(args[1], "-"), band) {
		fmt.Fprintf(&b, "%s: %s %s\n", q.SubjectText(), q.Max, q.Period.Text())
	}
	return b.String()
}

func (p *scriptRunner) objects(kind ObjectKind) string {
	var b strings.Builder
	for _, o := range p.ledger.Objects(kind) {
		fmt.Fprintf(&b, "%s %s %s\n", o.Name, o.Text, o.LastChange())
	}
	return b.String()
}

func (p *scriptRunner) otherText() string {
	var b strings.Builder
	epoch, leader := p.ledger.Epoch()
	fmt.Fprintf(&b, "%s: epoch %d, %s leads, last grant %d\n", p.ledger.Now().UTC().Format(time.RFC3339), epoch, leader,
		p.ledger.LastGrant())
	for f := range p.ledger.PendingGrants() {
		fmt.Fprintf(&b, "grant %d: %d of %s\n", f.Grant.ID, f.Grant.Units, f.Grant.Machine)
	}
	for _, e := range p.ledger.Evictions() {
		fmt.Fprintf(&b, "%s was evicted %v ago\n", e.Job, p.ledger.Now().Sub(time.Unix(0, e.At)))
	}
	for _, pair := range p.ledger.AvoidPairs() {
		fmt.Fprintf(&b, "%s not on %s until %s: %s\n", pair.Task, pair.Machine, pair.Until.Format(time.RFC3339),
			pair.Reason)
	}
	return b.String()
}

// checkSameAfterSave checks the invariants, and that saving and loading preserves the
// ledger.
func (p *scriptRunner) checkSameAfterSave() {
	p.ledger.check()
	saved := p.ledger.Save()
	again, err := Load(saved)
	if err != nil {
		p.t.Fatal(err)
	}
	again.check()
	if !bytes.Equal(again.Save(), saved) || again.Hash() != p.ledger.Hash() {
		p.t.Fatal("what was kept and read back is not the same")
	}
	p.ledger = again
}
