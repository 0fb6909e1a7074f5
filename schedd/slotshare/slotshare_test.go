package slotshare

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// slotRecorder records the changes.
type slotRecorder map[TransferID]bool

func (r slotRecorder) applyTodo(t *testing.T, s *Scheduler, now time.Duration) (again time.Duration) {
	t.Helper()
	changes, again := s.Todo(now)
	for _, c := range changes {
		if r[c.Transfer] == c.HasSlot {
			t.Fatalf("%v: transfer %d is told twice that it runs: %v", now, c.Transfer, c.HasSlot)
		}
		r[c.Transfer] = c.HasSlot
	}
	s.check()
	if more, _ := s.Todo(now); len(more) > 0 {
		t.Fatalf("%v: asked again it says %v", now, more)
	}
	return again
}

func (s *Scheduler) slotsOf(owner string) int {
	if o := s.owners[owner]; o != nil {
		return len(o.running)
	}
	return 0
}

// TestShares checks that a single user has all slots and gives some up at once to a
// second user.
func TestShares(t *testing.T) {
	s, r := New(32), slotRecorder{}
	for i := range TransferID(100) {
		s.Add(i, "ann")
	}
	if r.applyTodo(t, s, 0); s.slotsOf("ann") != 32 || !r[31] || r[32] {
		t.Fatalf("ann alone has %d slots", s.slotsOf("ann"))
	}
	s.Add(1000, "bob")
	if r.applyTodo(t, s, 1); !r[1000] || s.slotsOf("ann") != 31 || r[31] {
		t.Fatalf("bob came, and ann has %d slots", s.slotsOf("ann"))
	}
	for i := range TransferID(50) {
		s.Add(1001+i, "bob")
	}
	if r.applyTodo(t, s, 2); s.slotsOf("ann") != 16 || s.slotsOf("bob") != 16 {
		t.Fatalf("ann has %d slots, and bob %d", s.slotsOf("ann"), s.slotsOf("bob"))
	}
	s.Remove(0)
	if r.applyTodo(t, s, 3); !r[16] || s.slotsOf("ann") != 16 {
		t.Fatal("ann's next is not the first of those that had to stop")
	}
	for i := range TransferID(51) {
		s.Remove(1000 + i)
	}
	if r.applyTodo(t, s, 4); s.slotsOf("ann") != 32 || s.slotsOf("bob") != 0 {
		t.Fatalf("bob has gone, and ann has %d slots", s.slotsOf("ann"))
	}
}

// TestTurns checks that more users than slots take turns, and that each gets one soon.
func TestTurns(t *testing.T) {
	s, r := New(2), slotRecorder{}
	for i := range TransferID(5) {
		s.Add(i, fmt.Sprintf("user%d", i))
	}
	had, now := map[TransferID]bool{}, time.Duration(0)
	for range 10 {
		again := r.applyTodo(t, s, now)
		for id, runs := range r {
			had[id] = had[id] || runs
		}
		if again != 0 && again <= now {
			t.Fatalf("at %v it is to be asked again at %v", now, again)
		}
		now = again
	}
	if len(had) != 5 || now > 10*TurnLength {
		t.Errorf("after %v slots were had by %v", now, had)
	}
}

// TestRandom plays random operations and checks the guarantees after each step.
func TestRandom(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, have, now, id := New(1+r.IntN(6)), slotRecorder{}, time.Duration(0), TransferID(0)
		users := 1 + r.IntN(6)
		for range 300 {
			switch r.IntN(3) {
			case 0:
				id++
				s.Add(id, fmt.Sprint("user", r.IntN(users)))
			case 1:
				if id > 0 {
					gone := 1 + TransferID(r.IntN(int(id)))
					s.Remove(gone)
					delete(have, gone)
				}
			default:
				now += time.Duration(r.Int64N(int64(TurnLength)))
			}
			have.applyTodo(t, s, now)
			waits, fewest, most := 0, s.slots+1, 0
			for _, o := range s.owners {
				most = max(most, len(o.running))
				if n := len(o.paused) + len(o.waiting); n > 0 {
					waits += n
					fewest = min(fewest, len(o.running))
				}
			}
			if waits > 0 && (s.running < s.slots || most > fewest+1) {
				t.Fatalf("seed %d: %d wait, %d of %d slots are had, and %d by one while another has %d", seed, waits,
					s.running, s.slots, most, fewest)
			}
		}
	}
}
