package transfer

import (
	"testing"
)

// TestGroupIsChosen checks that a group counts as chosen where it is not the primary
// group. For a user whom the machine does not know, the primary group is unknown, and no
// group counts as chosen.
func TestGroupIsChosen(t *testing.T) {
	u := NewUserAgents()
	for _, tt := range []struct {
		uid, gid uint32
		want     bool
	}{{0, 0, false}, {0, 1, true}, {1234567891, 5, false}, {1234567891, 6, false}} {
		if got := u.IsSecondaryGroup(tt.uid, tt.gid); got != tt.want {
			t.Errorf("uid %d, gid %d: got %v", tt.uid, tt.gid, got)
		}
	}
}
