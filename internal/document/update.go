package document

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Update is how the newest update of a service goes.
type Update struct {
	State    string            `json:"state"`
	Revision uint32            `json:"revision"`
	Before   uint32            `json:"before,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	Tasks    map[string]uint32 `json:"tasks"`
	MaxDown  uint32            `json:"max_down"`
	Planned  uint32            `json:"planned_down"`
	Failing  uint32            `json:"failing"`
	Begun    string            `json:"begun"`
	Moved    string            `json:"moved"`
	Promotes string            `json:"promotes,omitempty"`
}

// UpdateOf returns the update of a service; nil: it was never updated.
func UpdateOf(u *scheddapi.UpdateProgress) *Update {
	if u == nil {
		return nil
	}
	return &Update{u.GetState(), u.GetRevision(), u.GetBefore(), u.GetReason(), u.GetTasks(), u.GetMaxDown(),
		u.GetPlanned(), u.GetFailing(), Timestamp(u.GetBegun()), Timestamp(u.GetMoved()), Timestamp(u.GetPromotesAt())}
}

// Total is how many tasks there are.
func (u *Update) Total() (n uint32) {
	for _, tasks := range u.Tasks {
		n += tasks
	}
	return n
}

// updateTaskStates are the states of tasks in the order in which they go through them.
var updateTaskStates = []string{"new", "settling", "unready", "starting", "waiting", "stopping", "resizing",
	"old", "failed", "excluded"}

// Text says it in a line.
func (u *Update) Text() string {
	parts := []string{fmt.Sprintf("%s, to revision %d", u.State, u.Revision)}
	for _, state := range updateTaskStates {
		if n := u.Tasks[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	text := strings.Join(parts, ", ")
	if u.Reason != "" {
		text += ": " + PrintableText(u.Reason)
	}
	return text
}

// BudgetText says how many tasks may be down for planned reasons, and are.
func (u *Update) BudgetText() string {
	return fmt.Sprintf("%d of %d tasks that may be down for planned reasons are; %d are down for others", u.Planned,
		u.MaxDown, u.Failing)
}
