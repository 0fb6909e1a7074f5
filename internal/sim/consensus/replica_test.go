package consensus

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/sim/kernel"
)

// host is one replica of a test's group, with its disk.
type host struct {
	*Replica
	disk    Disk
	writing *Disk // under way
	at      time.Duration
	held    []Message // made before it is safe
	applied []string
	down    time.Duration // until then
	learned int           // so often its log was damaged
}

// group plays replicas over a network that loses, delays and repeats, and disks that take time and are crashed away from.
type group struct {
	*testing.T
	rand      *kernel.Rand
	now       time.Duration
	hosts     []*host
	flight    []Message
	due       []time.Duration
	committed []string       // by index, as the first who applied it has it
	leaders   map[uint64]int // by term
	cut       int            // the replica that nothing comes to or from; -1: none
	bad       bool
}

func (g *group) send(m Message) {
	copies := 1
	if g.bad {
		copies = []int{0, 1, 1, 1, 1, 2}[g.rand.Below(6)]
	}
	if m.From == g.cut || m.To == g.cut {
		copies = 0
	}
	for range copies {
		g.flight = append(g.flight, m)
		g.due = append(g.due, g.now+g.rand.Between(time.Millisecond, 20*time.Millisecond))
	}
}

// flush writes what is to be written, and lets messages go that wait for nothing.
func (g *group) flush(h *host) {
	for {
		if h.writing != nil && h.at <= g.now {
			h.disk = *h.writing
			h.writing = nil
			for _, m := range h.held {
				g.send(m)
			}
			h.held = nil
			h.Written(&h.disk)
		}
		if h.writing != nil {
			break
		}
		disk := h.Write()
		h.held = h.Messages(h.held)
		if disk == nil {
			for _, m := range h.held {
				g.send(m)
			}
			h.held = nil
			break
		}
		h.writing, h.at = disk, g.now+g.rand.Between(0, 10*time.Millisecond)
	}
	for index, e, ok := h.Committed(); ok; index, e, ok = h.Committed() {
		text := fmt.Sprintf("%d %s", e.Term, e.Text)
		if int(index) > len(g.committed) {
			g.committed = append(g.committed, text)
		}
		if g.committed[index-1] != text {
			g.Fatalf("replica %d applies %q at %d, and another has applied %q", h.id, text, index, g.committed[index-1])
		}
		h.applied = append(h.applied, text)
	}
	if leads, term, _ := h.Leadership(); leads {
		if other, ok := g.leaders[term]; ok && other != h.id {
			g.Fatalf("%d and %d lead in term %d", other, h.id, term)
		}
		g.leaders[term] = h.id
	}
}

func (g *group) step() {
	g.now += time.Millisecond
	for i := 0; i < len(g.flight); {
		if g.due[i] > g.now {
			i++
			continue
		}
		m := g.flight[i]
		g.flight = append(g.flight[:i], g.flight[i+1:]...)
		g.due = append(g.due[:i], g.due[i+1:]...)
		if h := g.hosts[m.To]; h.down <= g.now {
			h.Step(g.now, m)
		}
	}
	for _, h := range g.hosts {
		if h.down > g.now {
			continue
		}
		if h.down == g.now && h.down > 0 {
			if flipped, ok := Flip(h.disk, g.rand.Below(1<<20)); ok && h == g.hosts[0] && len(g.hosts) > 1 {
				h.disk = flipped
				h.learned++
			}
			h.Replica, h.applied = New(h.id, len(g.hosts), h.disk, g.now, g.rand), nil
		}
		if at, ok := h.Wake(); ok && at <= g.now {
			h.Tick(g.now)
		}
		g.flush(h)
	}
}

// Whoever has found its log damaged has no vote, neither for itself nor for others, until it has all that a leader has; what it had acknowledged counts no more.
func TestDamaged(t *testing.T) {
	rand := kernel.NewRand(1, 7)
	whole := Disk{Term: 3, Vote: -1, Log: []Entry{newEntry(1, nil), newEntry(3, []byte("limit"))}}
	for n := range 8 * len("limit") {
		bad, ok := Flip(whole, n)
		if !ok || !bad.damaged() || whole.damaged() {
			t.Fatalf("bit %d: %v, damaged %v, and what it was made from %v", n, ok, bad.damaged(), whole.damaged())
		}
	}
	bad, _ := Flip(whole, 5)
	r := New(0, 3, bad, time.Second, rand)
	r.Tick(time.Hour)
	r.Step(time.Hour, Message{Kind: AskVote, From: 1, Term: 4, Index: 9, At: 3})
	early := Message{Kind: Append, From: 1, Term: 5, Entries: whole.Log[:1], Last: 1, Sent: time.Second}
	r.Step(time.Hour, early)
	late := early
	late.Entries, late.Last, late.Sent = whole.Log[:1], 2, time.Minute
	r.Step(time.Hour, late)
	if d := r.Write(); d == nil || d.Vote != -1 || !d.Learns || d.Term != 5 {
		t.Errorf("it has written %+v", d)
	}
	for _, m := range r.Messages(nil) {
		if m.Kind == AskVote || m.Kind == GiveVote && m.Yes || m.Kind == Appended && !m.Learns {
			t.Errorf("it says %+v", m)
		}
	}
	late.Entries = whole.Log
	r.Step(time.Hour, late)
	r.Step(time.Hour, Message{Kind: AskVote, From: 2, Term: 6, Index: 2, At: 3})
	if m := r.Messages(nil); len(m) != 2 || m[0].Learns || !m[1].Yes {
		t.Errorf("when it has learned all it says %+v", m)
	}
}

// TestGroup: whatever happens, all apply the same, one leads in a term, and what was committed stays; and when nothing happens any more, entries are committed.
func TestGroup(t *testing.T) {
	learned := 0
	for seed := range uint64(120) {
		n := []int{1, 3, 5}[seed%3]
		g := &group{T: t, rand: kernel.NewRand(seed, 7), leaders: map[uint64]int{}, cut: -1, bad: true}
		for i := range n {
			g.hosts = append(g.hosts, &host{})
			g.hosts[i].Replica = New(i, n, Disk{}, 0, g.rand)
		}
		proposed := 0
		for range 6000 {
			switch h := g.hosts[g.rand.Below(n)]; {
			case g.rand.Chance(0.02) && h.down < g.now:
				proposed++
				h.Propose(g.now, fmt.Append(nil, proposed))
			case g.rand.Chance(0.0005) && h.down < g.now: // what is not on its disk is lost
				h.down, h.writing, h.held = g.now+g.rand.Between(5*time.Millisecond, time.Second).Truncate(time.Millisecond), nil, nil
			case g.rand.Chance(0.001):
				g.cut = g.rand.Below(2*n) - n
			}
			g.step()
		}
		g.bad, g.cut = false, -1
		for range 10000 {
			g.step()
		}
		before := len(g.committed)
		for _, h := range g.hosts {
			h.Propose(g.now, []byte("last"))
		}
		for range 200 {
			g.step()
		}
		if len(g.committed) != before+1 {
			t.Fatalf("seed %d: %d entries are committed, want one more than %d", seed, len(g.committed), before)
		}
		confirmed := 0
		for _, h := range g.hosts {
			if len(h.applied) != len(g.committed) {
				t.Fatalf("seed %d: replica %d has applied %d of %d", seed, h.Replica.id, len(h.applied), len(g.committed))
			}
			learned += h.learned
			if h.Confirmed(g.now - 2*Heartbeat) {
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
