package replica

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// TestAdministration asks a follower, which passes everything on to the leader.
func TestAdministration(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *cell) {
		c.startAll()
		leader := c.leader()
		c.write(leader, "a")
		var follower *node
		for _, n := range c.all() {
			if n != leader {
				follower = n
			}
		}
		c.until("it knows who leads", func() bool { return follower.leader() != "" })
		c.start("n4:1")
		conn, err := c.net.dialer("n9:1")(follower.cfg.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		asked := wire.NewReplicaClient(conn)
		status := func() *wire.CellStatus {
			s, err := asked.Status(t.Context(), &wire.CellQuestion{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		if s := status(); s.GetSays() != leader.cfg.Name || len(s.GetMembers()) != 3 || s.GetSpare() != 1 {
			t.Errorf("got %v", s)
		}
		if _, err := asked.Add(t.Context(), &wire.CellMember{Address: "n4:1"}); err != nil {
			t.Fatal(err)
		}
		roles := map[string]int{}
		for _, m := range status().GetMembers() {
			roles[m.GetRole()]++
		}
		if len(roles) != 2 || roles[roleLeader] != 1 || roles[roleFollower] != 3 {
			t.Errorf("got %v", roles)
		}
		if _, err := asked.Remove(t.Context(), &wire.CellMember{Name: "n5"}); err == nil || !strings.Contains(err.Error(), roost.NotFound.Error()) {
			t.Errorf("nobody: got %v", err)
		}
		if _, err := asked.Remove(t.Context(), &wire.CellMember{Name: "n4"}); err != nil {
			t.Fatal(err)
		}

		// A replica that reaches nobody still says what it can.
		c.until("it knows who is left", func() bool { return len(follower.Status().Members) == 3 })
		c.net.isolate(follower.cfg.Address, []string{"n1:1", "n2:1", "n3:1", "n4:1"}, true)
		c.until("it knows that nobody leads", func() bool { return follower.leader() == "" })
		s := status()
		if s.GetSays() != follower.cfg.Name || s.GetSpare() != -1 || s.GetLeader() != "" {
			t.Errorf("cut off: got %v", s)
		}
	})
}

// TestOneProcess holds that a directory is not opened twice.
func TestOneProcess(t *testing.T) {
	bubble(t, 1, func(t *testing.T, c *cell) {
		c.startAll()
		c.leader()
		if err := Recover(c.config("n1:1"), &register{}); !errors.Is(err, roost.Conflict) {
			t.Errorf("recovery of one that runs: got %v", err)
		}
	})
}
