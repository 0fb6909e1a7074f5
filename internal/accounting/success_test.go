package accounting

import "testing"

// TestHasSucceeded checks what counts as a success, and what as a failure.
func TestHasSucceeded(t *testing.T) {
	for _, tt := range []struct {
		entry             AttemptEntry
		succeeded, failed bool
	}{
		{AttemptEntry{}, false, false},
		{AttemptEntry{Cause: EndedExit}, true, false},
		{AttemptEntry{Cause: EndedExit, ExitCode: 3}, false, true},
		{AttemptEntry{Cause: EndedExit, Signal: 9}, false, true},
		{AttemptEntry{Cause: EndedOwnSuccess, ExitCode: 3}, true, false},
		{AttemptEntry{Cause: EndedOwnFailure}, false, true},
		{AttemptEntry{Cause: EndedRemoval}, false, false},
		{AttemptEntry{Cause: EndedWalltime}, false, true},
	} {
		if a := &tt.entry; a.HasSucceeded() != tt.succeeded || a.HasFailed() != tt.failed {
			t.Errorf("%+v: succeeded %v, failed %v", *a, a.HasSucceeded(), a.HasFailed())
		}
	}
}
