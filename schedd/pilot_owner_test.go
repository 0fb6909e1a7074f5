package schedd

import (
	"context"
	"testing"

	grpcpeer "google.golang.org/grpc/peer"

	"github.com/roost-batch/roost/internal/identity/peer"
)

// TestPilotOwnerIsCertified checks that tasks of others are not sent to a pilot. Its
// certificate says whose it runs, and what its ad says does not count.
func TestPilotOwnerIsCertified(t *testing.T) {
	for name, tt := range map[string]struct {
		at           peer.Peer
		user, schedd string
		refused      bool
	}{
		"a machine of the pool": {peer.Peer{Name: "n1", Certified: []peer.Role{peer.Startd}}, "eve", "login1",
			false},
		"on this host":             {peer.Peer{Local: true}, "eve", "login1", false},
		"its owner":                {pilotOf("ada@login1"), "ada", "login1", false},
		"its owner elsewhere":      {pilotOf("ada@login1"), "ada", "login2", true},
		"another user":             {pilotOf("ada@login1"), "eve", "login1", true},
		"of a user anywhere":       {pilotOf("ada"), "ada", "login2", false},
		"another, anywhere":        {pilotOf("ada"), "eve", "login2", true},
		"without an owner":         {pilotOf(""), "ada", "login1", true},
		"with an owner of its own": {pilotOf("@"), "@", "login1", true},
	} {
		ctx := grpcpeer.NewContext(context.Background(), &grpcpeer.Peer{AuthInfo: tt.at})
		s := &startdSession{pilotOwner: pilotOwnerOf(ctx)}
		if why := s.refusesOwner(tt.user, tt.schedd); (why != "") != tt.refused {
			t.Errorf("%s: refused %q, want %v", name, why, tt.refused)
		}
	}
	if why := (*startdSession)(nil).refusesOwner("ada", "login1"); why != "" {
		t.Errorf("without a session: %q", why)
	}
}

func pilotOf(owner string) peer.Peer {
	return peer.Peer{Name: "pilot-1", Certified: []peer.Role{peer.Pilot}, Owner: owner}
}
