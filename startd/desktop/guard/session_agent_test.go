package guard

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	grpcpeer "google.golang.org/grpc/peer"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
)

// userContext returns the context of a call by a user of this host.
func userContext(uid uint32) context.Context {
	return grpcpeer.NewContext(context.Background(),
		&grpcpeer.Peer{AuthInfo: peer.Peer{Local: true, UID: uid, PID: int32(os.Getpid())}})
}

// TestWhoMaySayThatHeIsThere checks that only users with a session may report, at the
// machine or not.
func TestWhoMaySayThatHeIsThere(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"1": "UID=61001\nACTIVE=1\nREMOTE=0\nSEAT=seat0\nCLASS=user\n",
		"2": "UID=61002\nACTIVE=1\nREMOTE=1\nCLASS=user\n",
		"3": "UID=61003\nACTIVE=1\nREMOTE=0\nSEAT=seat0\nCLASS=greeter\n",
		"4": "UID=61001\nACTIVE=0\nREMOTE=1\nCLASS=user\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	g := &daemonContext{}
	for uid, want := range map[uint32]struct{ may, seated bool }{
		61001: {true, true}, 61002: {true, false}, 61003: {false, false}, 61004: {false, false},
		uint32(os.Geteuid()): {true, false},
	} {
		p, seated, err := g.authorizeReport(userContext(uid), dir)
		if (err == nil) != want.may || seated != want.seated {
			t.Errorf("user %d: at a seat %v, %v", uid, seated, err)
		}
		if err == nil && p.UID != uid || err != nil && !errors.Is(err, roost.PermissionDenied) {
			t.Errorf("user %d is %v, %v", uid, p, err)
		}
	}
	if _, _, err := g.authorizeReport(context.Background(), dir); !errors.Is(err, roost.Unauthenticated) {
		t.Errorf("somebody of whom the kernel says nothing: %v", err)
	}
}

// TestAgentsReachTheSigns checks the path from an agent's call to the observations.
func TestAgentsReachTheSigns(t *testing.T) {
	g := testGuard(t, t.TempDir())
	g.sources, g.state.sourceOrder = append(g.sources, g.agents), append(g.state.sourceOrder, g.agents.Name())
	defer g.run(t)()
	if _, err := g.Present(userContext(uint32(os.Geteuid())),
		&wire.PresentRequest{Busy: "a film", Game: true}); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := g.Mine(t.Context(), &wire.MineRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if s := m.GetSigns(); s.GetGame() && s.GetBusy() == userName(uint32(os.Geteuid()))+": a film" {
			return
		}
	}
}
