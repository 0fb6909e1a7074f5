package plan

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/provision/provider"
)

// OuterState is what an outer system says of a job.
type OuterState uint8

// The states of jobs in outer systems.
const (
	OuterQueued OuterState = iota
	OuterRunning
	OuterEnded
)

// OuterStatus is the answer of an outer system about one job.
type OuterStatus struct {
	ID      string
	State   OuterState
	Started time.Time // zero: not known
	Text    string    // its own words
	Hosts   []string
	// it has ended, and stays in the queue until somebody cancels it
	IsRemnant bool
	// it has ended with exit status 0: its pilots have joined, and left because they had
	// nothing to do or no time
	Succeeded bool
}

// StatusAnswered folds in an answer that covers all the asked allocations, by the ids of
// the outer system. Those without one in it are counted as missing; only after several
// such answers they have ended.
func (v *Provisioning) StatusAnswered(name string, asked []string, answers map[string]OuterStatus, now time.Time) {
	if p := v.Provider(name); p != nil {
		p.History.StatusAt = now
		if p.History.StatusError != "" {
			p.History.StatusError = ""
			v.Changed.Providers[name] = true
		}
	}
	v.foldAnswers(asked, answers, now)
}

// EndsRead folds in what the scripts of allocations have said about their ends. The outer
// system has not been asked, or has not answered.
func (v *Provisioning) EndsRead(keys []string, answers map[string]OuterStatus, now time.Time) {
	v.foldAnswers(keys, answers, now)
}

func (v *Provisioning) foldAnswers(asked []string, answers map[string]OuterStatus, now time.Time) {
	for _, key := range asked {
		a, _ := v.change(key)
		if a == nil || a.OuterID == "" {
			continue
		}
		s, ok := answers[a.OuterID]
		if !ok {
			if a.Unfound++; (a.Unfound >= missingAnswers || mutant.Active(mutant.StatusErrorIsEnd)) && a.Live == 0 {
				v.outerEnd(a, OuterStatus{Text: "the outer system knows it no longer"}, now)
			}
			continue
		}
		a.Unfound, a.OuterText = 0, s.Text
		for _, host := range s.Hosts {
			a.addHost(host)
		}
		switch s.State {
		case OuterQueued:
			a.Unwatched = false
		case OuterRunning:
			a.run(since(s.Started, a.Asked, now))
		case OuterEnded:
			if a.Live == 0 {
				v.outerEnd(a, s, now)
			}
		}
	}
}

// since returns a start as the outer system states it, if it is possible.
func since(start, asked, now time.Time) time.Time {
	if start.IsZero() || start.After(now) {
		return now
	}
	return maxTime(start, asked)
}

// StatusFailed notes that a status query was not answered. That changes nothing else.
func (v *Provisioning) StatusFailed(name, text string, now time.Time) {
	if p := v.Provider(name); p != nil {
		p.History.StatusAt, text = now, oneLine(text)
		if p.History.StatusError != text {
			p.History.StatusError = text
			v.Changed.Providers[name] = true
		}
	}
}

// outerEnd ends an allocation that the outer system has ended, and judges it.
func (v *Provisioning) outerEnd(a *Allocation, s OuterStatus, now time.Time) {
	until, text := now, s.Text
	if !a.Left.IsZero() {
		until = a.Left
	}
	switch {
	case a.Failing != "":
		v.endEarly(a, a.Failing, text, now)
	case a.Joins > 0 && until.Sub(a.Joined) >= earlyAfter, s.Succeeded && a.CancelAt.IsZero():
		a.end(now, Worked, text)
		if h := v.changeHistory(a); h.EarlyDeaths > 0 {
			h.EarlyDeaths, h.LastError = 0, ""
		}
	case !a.CancelAt.IsZero() && a.Outcome != EarlyDeath:
		a.end(now, Cancelled, a.Reason)
	case a.Joins == 0 && a.Unwatched && a.Outcome != EarlyDeath:
		a.end(now, Unseen, text)
	case a.Joins > 0:
		v.endEarly(a, fmt.Sprintf("its pilot left %s after it had joined", provider.SpanText(until.Sub(a.Joined))),
			text, now)
	default:
		v.endEarly(a, "none of its pilots has joined", text, now)
	}
}

func (v *Provisioning) endEarly(a *Allocation, reason, text string, now time.Time) {
	if text != "" {
		reason += " (" + text + ")"
	}
	judged := a.Outcome == EarlyDeath
	a.end(now, EarlyDeath, reason)
	if !judged {
		v.changeHistory(a).noteEarlyDeath(now, a)
	}
}
