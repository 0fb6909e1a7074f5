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
	bubble(t, 1, func(t *testing.T, c *cell) {
		begun := time.Now()
		n := c.start("n1:1")
		c.write(c.leader(), "a", "b")
		if took := time.Since(begun); took >= DefaultElection {
			t.Errorf("it took %v to lead: it waited for an election", took)
		}
		if result, err := n.put("c"); result != 3 || err != nil {
			t.Errorf("got %v, %v", result, err)
		}
		c.kill("n1:1")
		if _, err := n.put("d"); !errors.Is(err, roost.Unavailable) {
			t.Errorf("after the end: got %v", err)
		}
		c.start("n1:1")
		c.write(c.leader(), "d")
		c.same(4)
	})
}

func TestThree(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *cell) {
		c.startAll()
		leader := c.leader()
		c.write(leader, "a", "b", "c")
		c.same(3)
		for _, n := range c.all() {
			if _, err := n.put("x"); n != leader && !errors.Is(err, roost.Unavailable) {
				t.Errorf("%s, which does not lead: got %v", n.cfg.Address, err)
			}
		}
	})
}

// TestLeaderStopped holds that a leader which is stopped leaves no gap: another leads before anybody could have missed it.
func TestLeaderStopped(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *cell) {
		c.startAll()
		first := c.leader()
		c.write(first, "a")
		c.same(1)
		begun := time.Now()
		c.stop(first.cfg.Address)
		c.write(c.leader(), "b")
		if took := time.Since(begun); took >= DefaultElection {
			t.Errorf("it took %v", took)
		}
	})
}

// TestLeaderKilled lets a leader die without a word.
func TestLeaderKilled(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *cell) {
		c.startAll()
		first := c.leader()
		c.write(first, "a")
		c.kill(first.cfg.Address)
		second := c.leader()
		c.write(second, "b")
		c.start(first.cfg.Address)
		c.same(2)
	})
}

// TestLeaderIsolated cuts a leader off: another leads, and what the old one has proposed fails there, and is nowhere after the cut heals.
func TestLeaderIsolated(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *cell) {
		c.startAll()
		old := c.leader()
		c.write(old, "a")
		c.net.isolate(old.cfg.Address, c.addrs, true)
		if _, err := old.put("lost"); !errors.Is(err, roost.Unavailable) {
			t.Errorf("cut off: got %v", err)
		}
		if err := old.Verify(t.Context()); !errors.Is(err, roost.Unavailable) {
			t.Errorf("cut off, verifying: got %v", err)
		}
		c.until("it knows", func() bool { return !old.leads() })
		c.write(c.leader(), "b")
		c.net.heal()
		c.same(2)
	})
}

// TestOneWay cuts each direction of a follower's links alone. The others go on, and with pre-vote it unseats nobody when it is back.
func TestOneWay(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *cell) {
		c.startAll()
		leader := c.leader()
		follower := "n1:1"
		if leader.cfg.Address == follower {
			follower = "n2:1"
		}
		for _, hears := range []bool{true, false} {
			for _, a := range c.addrs {
				if hears {
					c.net.set(follower, a, true)
				} else {
					c.net.set(a, follower, true)
				}
			}
			for range 20 {
				c.write(c.leader(), "x")
				c.pass(time.Second)
			}
			c.net.heal()
			c.leader()
		}
		c.same(40)
		if got := c.leader(); got != leader {
			t.Errorf("the leader is now %s: it was unseated", got.cfg.Address)
		}
	})
}

// TestWiped wipes a replica's disk. Under its old id nothing reaches it any more; it is taken in under a new one, and has everything.
func TestWiped(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *cell) {
		c.startAll()
		leader := c.leader()
		c.write(leader, "a", "b")
		c.same(2)
		victim := "n1:1"
		if leader.cfg.Address == victim {
			victim = "n2:1"
		}
		former := c.at(victim).identity.Load().ID
		c.kill(victim)
		c.wipe(victim)
		n := c.start(victim)
		if n.identity.Load().ID == former {
			t.Fatal("it has its old id")
		}
		err := n.admit(&wire.ReplicaBytes{From: leader.identity.Load().ID, To: former, Cell: leader.identity.Load().Cell})
		if !errors.Is(err, roost.Stale) {
			t.Errorf("what is meant for its former self: got %v", err)
		}
		c.same(2)
		c.until("it votes", func() bool {
			s := c.leader().Status()
			return len(s.Members) == 3 && !slices.ContainsFunc(s.Members, func(m Member) bool { return !m.Voter || m.ID == former })
		})
		c.kill(c.leader().cfg.Address) // it counts: without it there is no majority
		c.write(c.leader(), "c")
		c.same(3)
	})
}

// TestForgetfulVote wipes the one replica that shares the leader's last entry with it, and takes the leader away: the third, which has not got
// the entry, must not be elected with the vote of somebody who has forgotten.
func TestForgetfulVote(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *cell) {
		c.startAll()
		leader := c.leader()
		c.write(leader, "a")
		c.same(1)
		others := slices.DeleteFunc(slices.Clone(c.addrs), func(a string) bool { return a == leader.cfg.Address })
		wiped, behind := others[0], others[1]
		c.net.isolate(behind, c.addrs, true)
		c.write(leader, "b")
		c.kill(leader.cfg.Address)
		c.kill(wiped)
		c.wipe(wiped)
		c.net.heal()
		c.start(wiped)
		c.pass(time.Minute)
		if c.at(wiped).leads() || c.at(behind).leads() {
			t.Fatal("one leads that has not got what is committed")
		}
		c.start(leader.cfg.Address)
		c.same(2)
		c.write(c.leader(), "c")
		c.same(3)
	})
}

// TestMembers makes three of one, replaces one of them, and removes the leader.
func TestMembers(t *testing.T) {
	bubble(t, 1, func(t *testing.T, c *cell) {
		c.startAll()
		leader := c.leader()
		c.write(leader, "a")
		c.addrs = []string{"n1:1", "n2:1", "n3:1"}
		c.start("n2:1")
		c.start("n3:1")
		if err := leader.Add(t.Context(), "n4:1"); !errors.Is(err, roost.Unavailable) {
			t.Errorf("one that is not there: got %v", err)
		}
		for _, a := range []string{"n2:1", "n3:1", "n3:1"} {
			if err := leader.Add(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		c.write(leader, "b")
		c.same(2)
		s := leader.Survey(t.Context())
		if len(s.Members) != 3 || s.Spare() != 1 || s.Members[1].Name != "n2" || !s.Members[1].Voter || s.Members[1].Last != s.Last {
			t.Errorf("got %+v", s)
		}
		if err := c.at("n2:1").Remove(t.Context(), "n3"); !errors.Is(err, roost.Unavailable) {
			t.Errorf("asked of one that does not lead: got %v", err)
		}
		c.kill("n3:1")
		if err := leader.Remove(t.Context(), "n2"); !errors.Is(err, roost.Conflict) {
			t.Errorf("of three, with one down, another one: got %v", err)
		}
		if err := leader.Remove(t.Context(), "n3"); err != nil {
			t.Fatal(err)
		}
		c.start("n4:1")
		if err := leader.Add(t.Context(), "n4:1"); err != nil {
			t.Fatal(err)
		}
		if err := leader.Remove(t.Context(), "n1:1"); err != nil {
			t.Fatal(err)
		}
		next := c.leader("n2:1", "n4:1")
		c.write(next, "c")
		if members := next.Status().Members; len(members) != 2 {
			t.Errorf("got %+v", members)
		}
		if err := next.Remove(t.Context(), "nobody"); !errors.Is(err, roost.NotFound) {
			t.Errorf("got %v", err)
		}
	})
}

// TestRecover loses two of three for good. What is left decides nothing, until it is made a cell of its own; then the others join anew.
func TestRecover(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *cell) {
		c.startAll()
		c.write(c.leader(), "a", "b")
		c.same(2)
		c.kill("n2:1")
		c.kill("n3:1")
		c.pass(10 * time.Second)
		if c.at("n1:1").leads() {
			t.Fatal("one of three leads")
		}
		c.kill("n1:1")
		if err := Recover(c.config("n1:1"), &register{}); err != nil {
			t.Fatal(err)
		}
		c.start("n1:1")
		leader := c.leader()
		c.write(leader, "c")

		c.start("n2:1") // with what it has: it stays out
		c.pass(10 * time.Second)
		if err := leader.Add(t.Context(), "n2:1"); !errors.Is(err, roost.Conflict) {
			t.Errorf("one of the old cell: got %v", err)
		}
		c.kill("n2:1")
		c.wipe("n2:1")
		c.start("n2:1")
		if err := leader.Add(t.Context(), "n2:1"); err != nil {
			t.Fatal(err)
		}
		c.same(3)
	})
	if err := Recover(Config{Dir: t.TempDir(), Name: "n1", Address: "n1:1", Log: slog.New(slog.DiscardHandler)}, &register{}); !errors.Is(err, roost.NotFound) {
		t.Errorf("nothing to recover: got %v", err)
	}
}

// TestSnapshot lets a replica fall so far behind that the log no longer reaches back to it.
func TestSnapshot(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *cell) {
		c.startAll()
		leader := c.leader()
		away := "n1:1"
		if leader.cfg.Address == away {
			away = "n2:1"
		}
		c.write(leader, "a")
		c.same(1)
		c.kill(away)
		var settled sync.WaitGroup
		for range 12_000 {
			settled.Add(1)
			leader.Propose([]byte("x"), func(_ any, err error) {
				if err != nil && !errors.Is(err, roost.Exhausted) {
					t.Error(err)
				}
				settled.Done()
			})
			if leader.proposals.waits() >= maxInFlight/2 {
				settled.Wait()
			}
		}
		settled.Wait()
		c.until("a snapshot", func() bool { return leader.Status().Snapshot > 0 })
		c.start(away)
		c.same(12_001)
		c.kill(away)
		c.start(away) // from its own snapshot
		c.same(12_001)
		c.write(c.leader(), "b")
		c.same(12_002)
	})
}

// TestAllRestarted stops everybody at once, and starts them again.
func TestAllRestarted(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *cell) {
		for i := range 3 {
			c.startAll()
			c.write(c.leader(), "a", "b")
			c.same(2 * (i + 1))
			c.stopAll()
		}
	})
}

// TestBegin holds when a cell may begin: when all are there, are empty, and want the same one.
func TestBegin(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *cell) {
		c.start("n1:1")
		c.start("n2:1")
		c.pass(time.Minute)
		if c.at("n1:1").leads() || c.at("n2:1").leads() {
			t.Error("a cell began without its third replica")
		}
		other := c.config("n3:1")
		other.Peers = []string{"n2:1", "n3:1"}
		c.startWith(other)
		c.pass(time.Minute)
		if c.at("n1:1").leads() || c.at("n2:1").leads() {
			t.Error("a cell began whose replicas do not name the same peers")
		}
		c.kill("n3:1")
		c.start("n3:1")
		c.write(c.leader(), "a")
		c.same(1)
	})
}

// TestMoved gives a replica another address.
func TestMoved(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *cell) {
		c.startAll()
		c.write(c.leader(), "a")
		c.kill("n3:1")
		moved := c.config("n3:1")
		moved.Address = "n4:1"
		c.startWith(moved)
		c.until("all know", func() bool {
			s := c.leader().Survey(t.Context())
			return s.Spare() == 1 && len(s.Members) == 3 && s.Members[2].Address == "n4:1"
		})
		c.write(c.leader(), "b")
		c.same(2)
	})
}

// TestBrokenDisk takes the log's directory away from under a replica: it must not go on in silence.
func TestBrokenDisk(t *testing.T) {
	bubble(t, 1, func(t *testing.T, c *cell) {
		c.start("n1:1")
		n := c.leader()
		c.write(n, "a")
		n.store.Load().WAL.Close() // as good as a disk that fails
		if _, err := n.put("b"); err == nil {
			t.Error("an entry was committed that could not be written")
		}
		if err := <-n.done; err == nil {
			t.Error("got no error")
		}
		n.server.Stop()
		n.stop()
		c.set("n1:1", nil)
		c.start("n1:1")
		c.write(c.leader(), "b")
		c.same(2)
	})
}
