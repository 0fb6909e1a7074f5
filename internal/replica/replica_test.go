package replica

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

func TestAlone(t *testing.T) {
	runCellTest(t, 1, func(t *testing.T, c *testCell) {
		begun := time.Now()
		n := c.startReplica("n1:1")
		c.commitEntries(c.waitForLeader(), "a", "b")
		if took := time.Since(begun); took >= DefaultElectionTimeout {
			t.Errorf("it took %v to lead: it waited for an election", took)
		}
		if result, err := n.commitEntry("c"); result != 3 || err != nil {
			t.Errorf("got %v, %v", result, err)
		}
		c.killReplica("n1:1")
		if _, err := n.commitEntry("d"); !errors.Is(err, roost.Unavailable) {
			t.Errorf("after the end: got %v", err)
		}
		c.startReplica("n1:1")
		c.commitEntries(c.waitForLeader(), "d")
		c.waitForSameState(4)
	})
}

func TestThree(t *testing.T) {
	runCellTest(t, 3, func(t *testing.T, c *testCell) {
		c.startAll()
		leader := c.waitForLeader()
		c.commitEntries(leader, "a", "b", "c")
		c.waitForSameState(3)
		for _, n := range c.runningNodes() {
			if _, err := n.commitEntry("x"); n != leader && !errors.Is(err, roost.Unavailable) {
				t.Errorf("%s, which does not lead: got %v", n.config.Address, err)
			}
		}
	})
}

// TestLeaderStopped checks that a stopped leader leaves no gap: another leads before an
// election timeout passes.
func TestLeaderStopped(t *testing.T) {
	runCellTest(t, 3, func(t *testing.T, c *testCell) {
		c.startAll()
		first := c.waitForLeader()
		c.commitEntries(first, "a")
		c.waitForSameState(1)
		begun := time.Now()
		c.stopReplica(first.config.Address)
		c.commitEntries(c.waitForLeader(), "b")
		if took := time.Since(begun); took >= DefaultElectionTimeout {
			t.Errorf("it took %v", took)
		}
	})
}

// TestLeaderKilled kills a leader without a message to the others.
func TestLeaderKilled(t *testing.T) {
	runCellTest(t, 3, func(t *testing.T, c *testCell) {
		c.startAll()
		first := c.waitForLeader()
		c.commitEntries(first, "a")
		begun := time.Now()
		c.killReplica(first.config.Address)
		second := c.waitForLeader()
		c.commitEntries(second, "b")
		if took := time.Since(begun); took >= DefaultElectionTimeout {
			t.Errorf("another led after %v, and an election timeout is %v", took, DefaultElectionTimeout)
		}
		c.startReplica(first.config.Address)
		c.waitForSameState(2)
	})
}

// TestLeaderIsolated isolates a leader. Another leads, and what the old one has proposed
// fails there, and is in no log after the link is restored.
func TestLeaderIsolated(t *testing.T) {
	runCellTest(t, 3, func(t *testing.T, c *testCell) {
		c.startAll()
		old := c.waitForLeader()
		c.commitEntries(old, "a")
		c.network.isolateAddress(old.config.Address, c.addresses, true)
		if _, err := old.commitEntry("lost"); !errors.Is(err, roost.Unavailable) {
			t.Errorf("cut off: got %v", err)
		}
		if err := old.Verify(t.Context()); !errors.Is(err, roost.Unavailable) {
			t.Errorf("cut off, verifying: got %v", err)
		}
		c.waitUntil("it knows", func() bool { return !old.isLeader() })
		c.commitEntries(c.waitForLeader(), "b")
		c.network.healAll()
		c.waitForSameState(2)
	})
}

// TestOneWay cuts each direction of a follower's links alone. The others continue, and
// with pre-vote the follower deposes no leader when it is back.
func TestOneWay(t *testing.T) {
	runCellTest(t, 3, func(t *testing.T, c *testCell) {
		c.startAll()
		leader := c.waitForLeader()
		follower := "n1:1"
		if leader.config.Address == follower {
			follower = "n2:1"
		}
		for _, hears := range []bool{true, false} {
			for _, a := range c.addresses {
				if hears {
					c.network.setLink(follower, a, true)
				} else {
					c.network.setLink(a, follower, true)
				}
			}
			for range 20 {
				c.commitEntries(c.waitForLeader(), "x")
				c.passTime(time.Second)
			}
			c.network.healAll()
			c.waitForLeader()
		}
		c.waitForSameState(40)
		if got := c.waitForLeader(); got != leader {
			t.Errorf("the leader is now %s: it was unseated", got.config.Address)
		}
	})
}

// TestWiped wipes a replica's disk. Its old id is no longer used; it is added under a new
// one, and gets all entries.
func TestWiped(t *testing.T) {
	runCellTest(t, 3, func(t *testing.T, c *testCell) {
		c.startAll()
		leader := c.waitForLeader()
		c.commitEntries(leader, "a", "b")
		c.waitForSameState(2)
		victim := "n1:1"
		if leader.config.Address == victim {
			victim = "n2:1"
		}
		former := c.nodeAt(victim).identity.Load().ID
		c.killReplica(victim)
		c.wipeDisk(victim)
		n := c.startReplica(victim)
		if n.identity.Load().ID == former {
			t.Fatal("it has its old id")
		}
		err := n.checkHello(&wire.ReplicaBytes{From: leader.identity.Load().ID, To: former,
			Cell: leader.identity.Load().Cell})
		if !errors.Is(err, roost.Stale) {
			t.Errorf("what is meant for its former self: got %v", err)
		}
		c.waitForSameState(2)
		c.waitUntil("it votes", func() bool {
			s := c.waitForLeader().Status()
			return len(s.Members) == 3 && !slices.ContainsFunc(s.Members, func(m CellMember) bool {
				return !m.IsVoter || m.ID == former
			})
		})
		c.killReplica(c.waitForLeader().config.Address) // it counts: without it there is no majority
		c.commitEntries(c.waitForLeader(), "c")
		c.waitForSameState(3)
	})
}

// TestVoteAfterWipe wipes the only replica that shares the leader's last entry, and stops
// the leader. The third, which does not have the entry, must not be elected with the vote
// of the wiped replica.
func TestVoteAfterWipe(t *testing.T) {
	runCellTest(t, 3, func(t *testing.T, c *testCell) {
		c.startAll()
		leader := c.waitForLeader()
		c.commitEntries(leader, "a")
		c.waitForSameState(1)
		others := slices.DeleteFunc(slices.Clone(c.addresses), func(a string) bool {
			return a == leader.config.Address
		})
		wiped, behind := others[0], others[1]
		c.network.isolateAddress(behind, c.addresses, true)
		c.commitEntries(leader, "b")
		c.killReplica(leader.config.Address)
		c.killReplica(wiped)
		c.wipeDisk(wiped)
		c.network.healAll()
		c.startReplica(wiped)
		c.passTime(time.Minute)
		if c.nodeAt(wiped).isLeader() || c.nodeAt(behind).isLeader() {
			t.Fatal("one leads that has not got what is committed")
		}
		c.startReplica(leader.config.Address)
		c.waitForSameState(2)
		c.commitEntries(c.waitForLeader(), "c")
		c.waitForSameState(3)
	})
}

// TestMembers grows a cell from one to three replicas, replaces one of them, and removes
// the leader.
func TestMembers(t *testing.T) {
	runCellTest(t, 1, func(t *testing.T, c *testCell) {
		c.startAll()
		leader := c.waitForLeader()
		c.commitEntries(leader, "a")
		c.addresses = []string{"n1:1", "n2:1", "n3:1"}
		c.startReplica("n2:1")
		c.startReplica("n3:1")
		if err := leader.Add(t.Context(), "n4:1"); !errors.Is(err, roost.Unavailable) {
			t.Errorf("one that is not there: got %v", err)
		}
		for _, a := range []string{"n2:1", "n3:1", "n3:1"} {
			if err := leader.Add(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		c.commitEntries(leader, "b")
		c.waitForSameState(2)
		s := leader.Survey(t.Context())
		if len(s.Members) != 3 || s.SpareVoters() != 1 || s.Members[1].Name != "n2" || !s.Members[1].IsVoter ||
			s.Members[1].LastIndex != s.LastIndex {
			t.Errorf("got %+v", s)
		}
		if err := c.nodeAt("n2:1").Remove(t.Context(), "n3"); !errors.Is(err, roost.Unavailable) {
			t.Errorf("asked of one that does not lead: got %v", err)
		}
		c.killReplica("n3:1")
		if err := leader.Remove(t.Context(), "n2"); !errors.Is(err, roost.Conflict) {
			t.Errorf("of three, with one down, another one: got %v", err)
		}
		if err := leader.Remove(t.Context(), "n3"); err != nil {
			t.Fatal(err)
		}
		c.startReplica("n4:1")
		if err := leader.Add(t.Context(), "n4:1"); err != nil {
			t.Fatal(err)
		}
		if err := leader.Remove(t.Context(), "n1:1"); err != nil {
			t.Fatal(err)
		}
		next := c.waitForLeader("n2:1", "n4:1")
		c.commitEntries(next, "c")
		if members := next.Status().Members; len(members) != 2 {
			t.Errorf("got %+v", members)
		}
		if err := next.Remove(t.Context(), "nobody"); !errors.Is(err, roost.NotFound) {
			t.Errorf("got %v", err)
		}
	})
}

// TestRecover loses two of three replicas permanently. The last one commits nothing until
// it is made a cell of its own; then the others join it as new replicas.
func TestRecover(t *testing.T) {
	runCellTest(t, 3, func(t *testing.T, c *testCell) {
		c.startAll()
		c.commitEntries(c.waitForLeader(), "a", "b")
		c.waitForSameState(2)
		c.killReplica("n2:1")
		c.killReplica("n3:1")
		c.passTime(10 * time.Second)
		if c.nodeAt("n1:1").isLeader() {
			t.Fatal("one of three leads")
		}
		c.killReplica("n1:1")
		if err := Recover(c.replicaConfig("n1:1"), &registerMachine{}); err != nil {
			t.Fatal(err)
		}
		c.startReplica("n1:1")
		leader := c.waitForLeader()
		c.commitEntries(leader, "c")

		c.startReplica("n2:1") // with its old data: it stays out
		c.passTime(10 * time.Second)
		if err := leader.Add(t.Context(), "n2:1"); !errors.Is(err, roost.Conflict) {
			t.Errorf("one of the old cell: got %v", err)
		}
		c.killReplica("n2:1")
		c.wipeDisk("n2:1")
		c.startReplica("n2:1")
		if err := leader.Add(t.Context(), "n2:1"); err != nil {
			t.Fatal(err)
		}
		c.waitForSameState(3)
	})
	if err := Recover(Config{Dir: t.TempDir(), Name: "n1", Address: "n1:1", Log: slog.New(slog.DiscardHandler)},
		&registerMachine{}); !errors.Is(err, roost.NotFound) {
		t.Errorf("nothing to recover: got %v", err)
	}
}

// TestSnapshot lets a replica fall so far behind that the log no longer has its next
// entry.
func TestSnapshot(t *testing.T) {
	runCellTest(t, 3, func(t *testing.T, c *testCell) {
		c.startAll()
		leader := c.waitForLeader()
		away := "n1:1"
		if leader.config.Address == away {
			away = "n2:1"
		}
		c.commitEntries(leader, "a")
		c.waitForSameState(1)
		c.killReplica(away)
		var resolved sync.WaitGroup
		for range 12_000 {
			resolved.Add(1)
			leader.Propose([]byte("x"), func(_ any, err error) {
				if err != nil && !errors.Is(err, roost.Exhausted) {
					t.Error(err)
				}
				resolved.Done()
			})
			if leader.proposals.pendingCount() >= maxProposed/2 {
				resolved.Wait()
			}
		}
		resolved.Wait()
		c.waitUntil("a snapshot", func() bool { return leader.Status().SnapshotIndex > 0 })
		c.startReplica(away)
		c.waitForSameState(12_001)
		c.killReplica(away)
		c.startReplica(away) // from its own snapshot
		c.waitForSameState(12_001)
		c.commitEntries(c.waitForLeader(), "b")
		c.waitForSameState(12_002)
	})
}

// TestAllRestarted stops all replicas at once, and starts them again.
func TestAllRestarted(t *testing.T) {
	runCellTest(t, 3, func(t *testing.T, c *testCell) {
		for i := range 3 {
			c.startAll()
			c.commitEntries(c.waitForLeader(), "a", "b")
			c.waitForSameState(2 * (i + 1))
			c.stopAll()
		}
	})
}

// TestBootstrap checks when a cell may begin: when all replicas are reachable, empty, and
// name the same peers.
func TestBootstrap(t *testing.T) {
	runCellTest(t, 3, func(t *testing.T, c *testCell) {
		c.startReplica("n1:1")
		c.startReplica("n2:1")
		c.passTime(time.Minute)
		if c.nodeAt("n1:1").isLeader() || c.nodeAt("n2:1").isLeader() {
			t.Error("a cell began without its third replica")
		}
		other := c.replicaConfig("n3:1")
		other.Peers = []string{"n2:1", "n3:1"}
		c.startWith(other)
		c.passTime(time.Minute)
		if c.nodeAt("n1:1").isLeader() || c.nodeAt("n2:1").isLeader() {
			t.Error("a cell began whose replicas do not name the same peers")
		}
		c.killReplica("n3:1")
		c.startReplica("n3:1")
		c.commitEntries(c.waitForLeader(), "a")
		c.waitForSameState(1)
	})
}

// TestChangedAddress gives a replica another address.
func TestChangedAddress(t *testing.T) {
	runCellTest(t, 3, func(t *testing.T, c *testCell) {
		c.startAll()
		c.commitEntries(c.waitForLeader(), "a")
		c.killReplica("n3:1")
		moved := c.replicaConfig("n3:1")
		moved.Address = "n4:1"
		c.startWith(moved)
		c.waitUntil("all know", func() bool {
			s := c.waitForLeader().Survey(t.Context())
			return s.SpareVoters() == 1 && len(s.Members) == 3 && s.Members[2].Address == "n4:1"
		})
		c.commitEntries(c.waitForLeader(), "b")
		c.waitForSameState(2)
	})
}

// TestBrokenDisk removes the log's directory of a running replica, which must not
// continue silently.
func TestBrokenDisk(t *testing.T) {
	runCellTest(t, 1, func(t *testing.T, c *testCell) {
		c.startReplica("n1:1")
		n := c.waitForLeader()
		c.commitEntries(n, "a")
		n.store.Load().WAL.Close() // like a disk that fails
		if _, err := n.commitEntry("b"); err == nil {
			t.Error("an entry was committed that could not be written")
		}
		if err := <-n.done; err == nil {
			t.Error("got no error")
		}
		n.server.Stop()
		n.stop()
		c.setNode("n1:1", nil)
		c.startReplica("n1:1")
		c.commitEntries(c.waitForLeader(), "b")
		c.waitForSameState(2)
	})
}
