package replica

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// TestAdminViaFollower calls a follower, which forwards everything to the leader.
func TestAdminViaFollower(t *testing.T) {
	runCellTest(t, 3, func(t *testing.T, c *testCell) {
		c.startAll()
		leader := c.waitForLeader()
		c.commitEntries(leader, "a")
		var follower *testNode
		for _, n := range c.runningNodes() {
			if n != leader {
				follower = n
			}
		}
		c.waitUntil("it knows who leads", func() bool { return follower.leaderAddress() != "" })
		c.startReplica("n4:1")
		conn, err := c.network.dialerFor("n9:1")(follower.config.Address)
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
		if s := status(); s.GetSays() != leader.config.Name || len(s.GetMembers()) != 3 || s.GetSpare() != 1 {
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
		if _, err := asked.Remove(t.Context(), &wire.CellMember{Name: "n5"}); err == nil ||
			!strings.Contains(err.Error(), roost.NotFound.Error()) {
			t.Errorf("nobody: got %v", err)
		}
		if _, err := asked.Remove(t.Context(), &wire.CellMember{Name: "n4"}); err != nil {
			t.Fatal(err)
		}

		// A replica that reaches no other still returns what it knows.
		c.waitUntil("it knows who is left", func() bool { return len(follower.Status().Members) == 3 })
		c.network.isolateAddress(follower.config.Address, []string{"n1:1", "n2:1", "n3:1", "n4:1"}, true)
		c.waitUntil("it knows that nobody leads", func() bool { return follower.leaderAddress() == "" })
		s := status()
		if s.GetSays() != follower.config.Name || s.GetSpare() != -1 || s.GetLeader() != "" {
			t.Errorf("cut off: got %v", s)
		}
	})
}

// TestOneProcess checks that a directory cannot be opened twice.
func TestOneProcess(t *testing.T) {
	runCellTest(t, 1, func(t *testing.T, c *testCell) {
		c.startAll()
		c.waitForLeader()
		if err := Recover(c.replicaConfig("n1:1"), &registerMachine{}); !errors.Is(err, roost.Conflict) {
			t.Errorf("recovery of one that runs: got %v", err)
		}
	})
}
