package view

import (
	"slices"
	"testing"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// TestUpdateCommands offers an undo where there is a revision to go back to.
func TestUpdateCommands(t *testing.T) {
	for _, c := range []struct {
		state  update.State
		before uint32
		want   []string
	}{
		{update.Rolling, 1, []string{"pause", "undo", "abort"}},
		{update.Rolling, 0, []string{"pause", "abort"}},
		{update.Done, 3, []string{"undo", "close"}},
		{update.Done, 0, []string{"close"}},
		{update.Closed, 0, nil},
	} {
		got := updateCommands(&document.Update{State: c.state.String(), Before: c.before})
		if !slices.Equal(got, c.want) {
			t.Errorf("%v after revision %d: got %q, want %q", c.state, c.before, got, c.want)
		}
	}
	if got := updateCommands(nil); got != nil {
		t.Errorf("never updated: %q", got)
	}
}
