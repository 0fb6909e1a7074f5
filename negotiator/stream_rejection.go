package negotiator

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
)

// rejectStreams tells schedds which of their stream requests have waited for too long
// without room (HRM §4.3.1). Such a request is refused instead of waiting forever. One
// that waits for a quota or a limit is not refused, because there may be room for it. The
// time counts from the first cycle without room, so never before the machines are known.
func (c *leaderState) rejectStreams(now time.Time, unplaced []match.UnplacedRequest,
	requests map[*match.Request]*scheddRequest) {
	for _, u := range unplaced {
		r := requests[u.Request]
		if r.Class.AppClass != gpu.StreamClass || r.Now || r.waitRefused {
			continue
		}
		if !u.NoRoom {
			r.noRoomSince = time.Time{}
			continue
		}
		if r.noRoomSince.IsZero() {
			r.noRoomSince = now
		}
		due := r.noRoomSince.Add(c.policy.StreamMaxWait)
		switch {
		case now.Before(due):
			c.grants().setNextSweep(due)
		case u.Explanation == nil:
			r.explanationWanted, c.changed = true, true // the next cycle says what is missing
		default:
			r.waitRefused = true
			text := fmt.Sprintf("no room was found within %v: %s", c.policy.StreamMaxWait, noRoomText(u.Explanation))
			c.schedds[r.Key.Schedd].sendQueue.putMessage(
				&wire.ToSchedd{Of: &wire.ToSchedd_Unplaced{Unplaced: &wire.Unplaced{Request: r.Key.ID, Refused: text}}},
			)
		}
	}
}

// maxNoRoomText bounds how many reasons a refusal names.
const maxNoRoomText = 3

// noRoomText says in one line why there is no room, and what would help most.
func noRoomText(e *match.WaitExplanation) string {
	text := e.Summary
	var parts []string
	for _, reason := range e.Reasons[:min(len(e.Reasons), maxNoRoomText)] {
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
