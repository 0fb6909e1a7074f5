package slotshare

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// runs follows the changes.
type runs map[Transfer]bool

func (r runs) take(t *testing.T, s *Scheduler, now time.Duration) (again time.Duration) {
	t.Helper()
	changes, again := s.Todo(now)
	for _, c := range changes {
		if r[c.Transfer] == c.Runs {
			t.Fatalf("%v: transfer %d is told twice that it runs: %v", now, c.Transfer, c.Runs)
		}
		r[c.Transfer] = c.Runs
	}
	s.check()
	if more, _ := s.Todo(now); len(more) > 0 {
		t.Fatalf("%v: asked again it says %v", now, more)
	}
	return again
}

func (s *Scheduler) has(owner string) int {
	if o := s.owners[owner]; o != nil {
		return len(o.running)
	}
	return 0
}

// TestShares: who is alone has all slots, and gives of them at once to who comes.
func TestShares(t *testing.T) {
	s, r := New(32), runs{}
	for i := range Transfer(100) {
		s.Add(i, "ann")
	}
	if r.take(t, s, 0); s.has("ann") != 32 || !r[31] || r[32] {
		t.Fatalf("ann alone has %d slots", s.has("ann"))
	}
	s.Add(1000, "bob")
	if r.take(t, s, 1); !r[1000] || s.has("ann") != 31 || r[31] {
		t.Fatalf("bob came, and ann has %d slots", s.has("ann"))
	}
	for i := range Transfer(50) {
		s.Add(1001+i, "bob")
	}
	if r.take(t, s, 2); s.has("ann") != 16 || s.has("bob") != 16 {
		t.Fatalf("ann has %d slots, and bob %d", s.has("ann"), s.has("bob"))
	}
	s.Remove(0)
	if r.take(t, s, 3); !r[16] || s.has("ann") != 16 {
		t.Fatal("ann's next is not the first of those that had to stop")
	}
	for i := range Transfer(51) {
		s.Remove(1000 + i)
	}
	if r.take(t, s, 4); s.has("ann") != 32 || s.has("bob") != 0 {
		t.Fatalf("bob has gone, and ann has %d slots", s.has("ann"))
	}
}

// TestTurns: more users than slots take turns, and each has had one soon.
func TestTurns(t *testing.T) {
	s, r := New(2), runs{}
	for i := range Transfer(5) {
		s.Add(i, fmt.Sprintf("user%d", i))
	}
	had, now := map[Transfer]bool{}, time.Duration(0)
	for range 10 {
		again := r.take(t, s, now)
		for id, runs := range r {
			had[id] = had[id] || runs
		}
		if again != 0 && again <= now {
			t.Fatalf("at %v it is to be asked again at %v", now, again)
		}
		now = again
	}
	if len(had) != 5 || now > 10*Turn {
		t.Errorf("after %v slots were had by %v", now, had)
	}
}

// TestRandom plays what may happen, and holds what is promised after each step.
func TestRandom(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, have, now, id := New(1+r.IntN(6)), runs{}, time.Duration(0), Transfer(0)
		users := 1 + r.IntN(6)
		for range 300 {
			switch r.IntN(3) {
			case 0:
				id++
				s.Add(id, fmt.Sprint("user", r.IntN(users)))
			case 1:
				if id > 0 {
					gone := 1 + Transfer(r.IntN(int(id)))
					s.Remove(gone)
					delete(have, gone)
				}
			default:
				now += time.Duration(r.Int64N(int64(Turn)))
			}
			have.take(t, s, now)
			waits, fewest, most := 0, s.slots+1, 0
			for _, o := range s.owners {
				most = max(most, len(o.running))
				if n := len(o.paused) + len(o.waiting); n > 0 {
					waits += n
					fewest = min(fewest, len(o.running))
				}
			}
			if waits > 0 && (s.running < s.slots || most > fewest+1) {
				t.Fatalf("seed %d: %d wait, %d of %d slots are had, and %d by one while another has %d", seed, waits, s.running, s.slots, most, fewest)
			}
		}
	}
}
