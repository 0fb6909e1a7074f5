package consensus

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/sim/eventloop"
)

// testReplica is a replica of a test group, with its disk.
type testReplica struct {
	*Replica
	disk      ReplicaDisk
	writing   *ReplicaDisk // write in progress
	at        time.Duration
	unsent    []Message // messages that wait for the write
	applied   []string
	downUntil time.Duration // time of the restart
	learned   int           // how often its log was damaged
}

// testGroup runs replicas over a faulty network and slow disks. The network loses, delays
// and duplicates messages. A crash loses what is not on disk.
type testGroup struct {
	*testing.T
	rand      *eventloop.SplitMix
	now       time.Duration
	hosts     []*testReplica
	inTransit []Message
	due       []time.Duration
	committed []string       // by index, as the first replica that applied it has it
	leaders   map[uint64]int // by term
	isolated  int            // the replica whose messages are all dropped; -1: none
	damaged   bool
}

func (g *testGroup) send(m Message) {
	copies := 1
	if g.damaged {
		copies = []int{0, 1, 1, 1, 1, 2}[g.rand.Below(6)]
	}
	if m.From == g.isolated || m.To == g.isolated {
		copies = 0
	}
	for range copies {
		g.inTransit = append(g.inTransit, m)
		g.due = append(g.due, g.now+g.rand.Between(time.Millisecond, 20*time.Millisecond))
	}
}

// writeAndSend starts and completes writes, and sends the messages that no longer wait.
func (g *testGroup) writeAndSend(h *testReplica) {
	for {
		if h.writing != nil && h.at <= g.now {
			h.disk = *h.writing
			h.writing = nil
			for _, m := range h.unsent {
				g.send(m)
			}
			h.unsent = nil
			h.WriteDone(&h.disk)
		}
		if h.writing != nil {
			break
		}
		disk := h.TakeWrite()
		h.unsent = h.TakeMessages(h.unsent)
		if disk == nil {
			for _, m := range h.unsent {
				g.send(m)
			}
			h.unsent = nil
			break
		}
		h.writing, h.at = disk, g.now+g.rand.Between(0, 10*time.Millisecond)
	}
	for index, e, ok := h.NextCommitted(); ok; index, e, ok = h.NextCommitted() {
		text := fmt.Sprintf("%d %s", e.Term, e.Text)
		if int(index) > len(g.committed) {
			g.committed = append(g.committed, text)
		}
		if g.committed[index-1] != text {
			g.Fatalf("replica %d applies %q at %d, and another has applied %q", h.id, text, index, g.committed[index-1])
		}
		h.applied = append(h.applied, text)
	}
	if leads, term, _ := h.LeaderState(); leads {
		if other, ok := g.leaders[term]; ok && other != h.id {
			g.Fatalf("%d and %d lead in term %d", other, h.id, term)
		}
		g.leaders[term] = h.id
	}
}

func (g *testGroup) runRandomStep() {
	g.now += time.Millisecond
	for i := 0; i < len(g.inTransit); {
		if g.due[i] > g.now {
			i++
			continue
		}
		m := g.inTransit[i]
		g.inTransit = append(g.inTransit[:i], g.inTransit[i+1:]...)
		g.due = append(g.due[:i], g.due[i+1:]...)
		if h := g.hosts[m.To]; h.downUntil <= g.now {
			h.HandleMessage(g.now, m)
		}
	}
	for _, h := range g.hosts {
		if h.downUntil > g.now {
			continue
		}
		if h.downUntil == g.now && h.downUntil > 0 {
			if flipped, ok := FlipBit(h.disk, g.rand.Below(1<<20)); ok && h == g.hosts[0] && len(g.hosts) > 1 {
				h.disk = flipped
				h.learned++
			}
			h.Replica, h.applied = New(h.id, len(g.hosts), h.disk, g.now, g.rand), nil
		}
		if at, ok := h.NextTick(); ok && at <= g.now {
			h.Tick(g.now)
		}
		g.writeAndSend(h)
	}
}

// TestDamaged checks that a replica with a damaged log has no vote until it has the
// leader's log. It may not vote for itself or for others. Its earlier acknowledgements no
// longer count.
func TestDamaged(t *testing.T) {
	rand := eventloop.NewRand(1, 7)
	whole := ReplicaDisk{Term: 3, Vote: -1, Log: []LogEntry{newEntry(1, nil), newEntry(3, []byte("limit"))}}
	for n := range 8 * len("limit") {
		bad, ok := FlipBit(whole, n)
		if !ok || !bad.isDamaged() || whole.isDamaged() {
			t.Fatalf("bit %d: %v, damaged %v, and what it was made from %v", n, ok, bad.isDamaged(), whole.isDamaged())
		}
	}
	bad, _ := FlipBit(whole, 5)
	r := New(0, 3, bad, time.Second, rand)
	r.Tick(time.Hour)
	r.HandleMessage(time.Hour, Message{Type: VoteRequest, From: 1, Term: 4, Index: 9, PreviousTerm: 3})
	early := Message{Type: AppendRequest, From: 1, Term: 5, Entries: whole.Log[:1], LastIndex: 1, SentAt: time.Second}
	r.HandleMessage(time.Hour, early)
	late := early
	late.Entries, late.LastIndex, late.SentAt = whole.Log[:1], 2, time.Minute
	r.HandleMessage(time.Hour, late)
	if d := r.TakeWrite(); d == nil || d.Vote != -1 || !d.IsLearner || d.Term != 5 {
		t.Errorf("it has written %+v", d)
	}
	for _, m := range r.TakeMessages(nil) {
		if m.Type == VoteRequest || m.Type == VoteReply && m.Accepted || m.Type == AppendReply && !m.IsLearner {
			t.Errorf("it says %+v", m)
		}
	}
	late.Entries = whole.Log
	r.HandleMessage(time.Hour, late)
	r.HandleMessage(time.Hour, Message{Type: VoteRequest, From: 2, Term: 6, Index: 2, PreviousTerm: 3})
	if m := r.TakeMessages(nil); len(m) != 2 || m[0].IsLearner || !m[1].Accepted {
		t.Errorf("when it has learned all it says %+v", m)
	}
}

// TestGroup checks safety under faults and progress without them. All replicas apply the
// same entries, a term has one leader, and committed entries stay. When the faults end,
// entries are committed.
func TestGroup(t *testing.T) {
	learned := 0
	for seed := range uint64(120) {
		n := []int{1, 3, 5}[seed%3]
		g := &testGroup{T: t, rand: eventloop.NewRand(seed, 7), leaders: map[uint64]int{}, isolated: -1, damaged: true}
		for i := range n {
			g.hosts = append(g.hosts, &testReplica{})
			g.hosts[i].Replica = New(i, n, ReplicaDisk{}, 0, g.rand)
		}
		proposed := 0
		for range 6000 {
			switch h := g.hosts[g.rand.Below(n)]; {
			case g.rand.Chance(0.02) && h.downUntil < g.now:
				proposed++
				h.Propose(g.now, fmt.Append(nil, proposed))
			case g.rand.Chance(0.0005) && h.downUntil < g.now: // crash: what is not on disk is lost
				h.downUntil, h.writing, h.unsent = g.now+
					g.rand.Between(5*time.Millisecond, time.Second).Truncate(time.Millisecond), nil, nil
			case g.rand.Chance(0.001):
				g.isolated = g.rand.Below(2*n) - n
			}
			g.runRandomStep()
		}
		g.damaged, g.isolated = false, -1
		for range 10000 {
			g.runRandomStep()
		}
		before := len(g.committed)
		for _, h := range g.hosts {
			h.Propose(g.now, []byte("last"))
		}
		for range 200 {
			g.runRandomStep()
		}
		if len(g.committed) != before+1 {
			t.Fatalf("seed %d: %d entries are committed, want one more than %d", seed, len(g.committed), before)
		}
		confirmed := 0
		for _, h := range g.hosts {
			if len(h.applied) != len(g.committed) {
				t.Fatalf("seed %d: replica %d has applied %d of %d", seed, h.Replica.id, len(h.applied),
					len(g.committed))
			}
			learned += h.learned
			if h.ConfirmedSince(g.now - 2*HeartbeatInterval) {
				confirmed++
			}
		}
		if confirmed != 1 {
			t.Fatalf("seed %d: %d replicas are confirmed to lead", seed, confirmed)
		}
	}
	if learned < 10 {
		t.Errorf("logs were damaged %d times", learned)
	}
}
