package update

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestRandom plays random jobs and checks the invariants after each step. Updates
// supersede each other, attempts die, machines fall silent, and drains ask the same
// budget. Then the faults stop, and each update must end.
func TestRandom(t *testing.T) {
	seeds := uint64(200)
	if n, err := strconv.ParseUint(os.Getenv("ROOST_UPDATE_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	ends := map[State]int{}
	for seed := range seeds {
		m := playRandom(t, rand.New(rand.NewPCG(seed, 1)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		ends[m.update.State]++
	}
	for _, s := range []State{Done, Undone, Aborted, Partial} {
		if ends[s] == 0 {
			t.Errorf("no update ended as %v: %v", s, ends)
		}
	}
}

func playRandom(t *testing.T, r *rand.Rand) *model {
	tasks := 1 + r.IntN(8)
	if r.IntN(30) == 0 { // several blocks of a tally
		tasks = 1 + r.IntN(3*tallyBlock)
	}
	m := newModel(t, tasks)
	m.stopTime = time.Duration(r.IntN(20)) * time.Second
	revision := uint32(1)
	for range 20 + r.IntN(100) {
		i := r.IntN(len(m.facts))
		switch k := r.IntN(20); {
		case k == 0 && revision < 9:
			revision++
			m.begin(revision, randomPolicy(r, m), attemptPlan{ready: time.Duration(r.IntN(30)) * time.Second})
		case k == 1 && revision < 9:
			revision++
			m.begin(revision, randomPolicy(r, m), attemptPlan{ready: -1})
		case k <= 3 && m.update.State != None:
			c := Command(1 + r.IntN(int(Pulse)))
			if u, err := m.update.After(c, m.mixed(), m.now.UnixNano()); err == nil {
				m.update = u
			}
		case k == 4 && m.facts[i].hasAttempt():
			m.exit(i)
		case k == 5 && m.facts[i].hasAttempt():
			m.set(i, Lost)
		case k <= 8:
			m.drain(i)
		case k == 9:
			m.noRoom[i] = !m.noRoom[i]
		default:
			m.run(time.Duration(r.IntN(30)) * time.Second)
		}
		m.decide()
	}
	clear(m.noRoom)
	for n := 0; n < 200+40*m.count && (m.update.State.IsActive() || n < 20); n++ { // what waits for people is decided
		m.run(20 * time.Second)
		switch m.update.State {
		case Paused, UndoPaused:
			m.command(Abort)
		case WaitingPromote:
			m.command(Promote)
		case WaitingPulse:
			m.command(Pulse)
		case Rolling:
			if m.update.Pulsed != 0 {
				m.command(Pulse)
			}
		default:
		}
	}
	m.run(time.Second)
	if m.update.State.IsActive() {
		t.Errorf("S14: the update is %+v, tasks %+v, policy %+v", m.update, m.facts, *m.policy())
	}
	if n := len(m.facts); m.update.State != None && n != m.count && m.facts[n-1].Condition != Ready {
		t.Errorf("S2: %d tasks are left beyond %d after %+v: %+v", n-m.count, m.count, m.update, m.facts[m.count-1:])
	}
	return m
}

// drain takes a task down as a drain would, if the budget has room.
func (m *model) drain(i int) {
	if i >= m.count || m.facts[i].Condition != Ready ||
		m.budget().Room() == 0 {
		return
	}
	m.set(i, Leaving)
	m.facts[i].Planned, m.charged = true, true
}

func randomPolicy(r *rand.Rand, m *model) Policy {
	for {
		p := DefaultPolicy()
		p.AtOnce = Amount{Number: 1 + r.IntN(m.count)}
		if r.IntN(3) == 0 {
			p.AtOnce = Amount{Percent: float64(r.IntN(100))}
		}
		p.Surge = Amount{Number: r.IntN(3) * r.IntN(2)}
		p.MaxDown, p.MaxDownSet = Amount{Number: r.IntN(3)}, r.IntN(2) == 0
		p.Settling = time.Duration(r.IntN(20)) * time.Second
		p.Failures = r.IntN(2) * r.IntN(m.count)
		p.OnFailure = FailureAction(r.IntN(3))
		if r.IntN(3) == 0 {
			p.Canary = r.IntN(m.count + 1)
			p.PromoteAfter = time.Duration(r.IntN(2)) * time.Minute
		}
		if r.IntN(4) == 0 {
			p.Disruptions = r.IntN(m.count)
		}
		if r.IntN(8) == 0 {
			p.Pulse = time.Minute
		}
		if r.IntN(6) == 0 {
			p.Tasks = []Range{{0, r.IntN(m.count)}}
		}
		bad := false
		for _, problem := range p.Problems(m.count) {
			bad = bad || !problem.Warning
		}
		if !bad {
			return p
		}
	}
}
