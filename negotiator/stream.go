package negotiator

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
)

// turnAway tells schedds which of their stream requests have found no room for as long as such may wait: who cannot be served is refused, and does not
// wait for ever (HRM §4.3.1). What a quota or a limit keeps waiting is not refused, as there may be room for it. The time counts from the first cycle
// that found none, so never before the machines are known.
func (c *cell) turnAway(now time.Time, unplaced []match.Unplaced, requests map[*match.Request]*request) {
	for _, u := range unplaced {
		r := requests[u.Request]
		if r.Class.App != gpu.Stream || r.Now || r.refusal {
			continue
		}
		if !u.NoRoom {
			r.short = time.Time{}
			continue
		}
		if r.short.IsZero() {
			r.short = now
		}
		due := r.short.Add(c.policy.StreamPatience)
		switch {
		case now.Before(due):
			c.sweepBy(due)
		case u.Explanation == nil:
			r.asked, c.changed = true, true // the next cycle says what is missing
		default:
			r.refusal = true
			text := fmt.Sprintf("no room was found within %v: %s", c.policy.StreamPatience, missing(u.Explanation))
			c.schedds[r.Key.Schedd].mail.put(&wire.ToSchedd{Of: &wire.ToSchedd_Unplaced{Unplaced: &wire.Unplaced{Request: r.Key.ID, Refused: text}}})
		}
	}
}

// maxMissing bounds how many reasons a refusal names.
const maxMissing = 3

// missing says in one line why there is no room, and what would help most.
func missing(e *match.Explanation) string {
	text := e.Summary
	var parts []string
	for _, reason := range e.Reasons[:min(len(e.Reasons), maxMissing)] {
		if !strings.Contains(text, reason.Text) {
			parts = append(parts, fmt.Sprintf("%d %s", reason.Machines, reason.Text))
		}
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	if len(e.Advice) > 0 {
		text += "; " + e.Advice[0]
	}
	return text
}
