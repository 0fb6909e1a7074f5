package names

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// modelMachine is a machine in the model of TestRandom.
type modelMachine struct {
	endpoints map[string]modelEndpoint // by task
	until     time.Time
}

type modelEndpoint struct {
	attempt int
	state   string
	port    int
}

// namesModel computes everything anew from all machines.
type namesModel struct {
	machines map[string]*modelMachine
	highest  map[string]int
}

// shown returns what has a name, as "task attempt state port".
func (m *namesModel) shown(now time.Time) []string {
	var all []string
	for _, machine := range m.machines {
		for task, e := range machine.endpoints {
			if e.attempt < m.highest[task] {
				continue
			}
			if !now.Before(machine.until) {
				e.state = "lost"
			}
			all = append(all, fmt.Sprintf("%s %d %s %d", task, e.attempt, e.state, e.port))
		}
	}
	slices.Sort(all)
	return all
}

// TestRandom compares a zone and what its watch has delivered with a model that computes
// all of it anew. Attempts of one task are on one machine each, as the queue starts them.
func TestRandom(t *testing.T) {
	for seed := range uint64(60) {
		runRandom(t, seed)
	}
}

func runRandom(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	zone := New(Config{Domain: "roost.internal", Cell: "cell"})
	model := namesModel{machines: map[string]*modelMachine{}, highest: map[string]int{}}
	watch := zone.StartWatch(Selection{})
	seen := map[TaskKey]string{}
	now := time.Unix(0, 0)
	newest := map[string]int{}
	for step := range 300 {
		name := fmt.Sprintf("n%d", random.IntN(5))
		m := model.machines[name]
		switch random.IntN(8) {
		case 0:
			zone.RemoveMachine(now, name)
			delete(model.machines, name)
		case 1:
			now = now.Add(time.Duration(random.IntN(8)) * time.Second)
			zone.Expire(now)
		case 2:
			zone.RenewLease(now, name, DefaultLease)
			if m != nil {
				m.until = now.Add(DefaultLease)
			}
		default:
			if m == nil {
				m = &modelMachine{endpoints: map[string]modelEndpoint{}}
				model.machines[name] = m
			}
			m.until = now.Add(DefaultLease)
			changeMachine(random, m, newest)
			for task, e := range m.endpoints {
				model.highest[task] = max(model.highest[task], e.attempt)
			}
			err := zone.SetMachine(now, zone.ReadMachine(now, MachineAd{Name: name, Node: name, Lease: DefaultLease,
				Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Text: adText(name, m.lines(random))}))
			if err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if len(m.endpoints) == 0 {
				delete(model.machines, name)
			}
		}
		zone.Check()
		if random.IntN(3) == 0 {
			applyUpdate(seen, zone.Take(watch))
		}
		compareShown(t, fmt.Sprintf("seed %d, step %d", seed, step), model.shown(now), zone.List(Selection{}))
	}
	applyUpdate(seen, zone.Take(watch))
	delivered := []string{}
	for _, text := range seen {
		delivered = append(delivered, text)
	}
	slices.Sort(delivered)
	if want := model.shown(now); !slices.Equal(delivered, want) {
		t.Fatalf("seed %d: the watch delivered %q, want %q", seed, delivered, want)
	}
}

// changeMachine starts, changes or ends a task of a machine.
func changeMachine(random *rand.Rand, m *modelMachine, newest map[string]int) {
	task := fmt.Sprintf("%d.web.ann", random.IntN(6))
	e, there := m.endpoints[task]
	switch {
	case there && random.IntN(3) == 0:
		delete(m.endpoints, task)
		return
	case !there:
		newest[task]++
		e = modelEndpoint{attempt: newest[task], port: 20000 + random.IntN(100)}
	}
	e.state = []string{"starting", "unready", "ready", "ready", "leaving"}[random.IntN(5)]
	m.endpoints[task] = e
}

// lines returns the endpoints in random order: only the text of each says whether it has
// changed.
func (m *modelMachine) lines(random *rand.Rand) []string {
	var lines []string
	for task, e := range m.endpoints {
		index, _, _ := strings.Cut(task, ".")
		lines = append(lines, fmt.Sprintf("1.pool/ann/web %s.%d r1 %s 10.0.0.1 http=%d", index, e.attempt, e.state,
			e.port))
	}
	slices.Sort(lines)
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines
}

func applyUpdate(seen map[TaskKey]string, u Update) {
	if u.Full {
		clear(seen)
	}
	for _, e := range u.Endpoints {
		seen[e.TaskKey] = endpointLine(e)
	}
	for _, key := range u.Removed {
		delete(seen, key)
	}
}

func endpointLine(e *Endpoint) string {
	port, _ := e.Port("http")
	return fmt.Sprintf("%d.%s.%s %d %v %d", e.Index, e.Name, e.Owner, e.Attempt, e.State, port)
}

func compareShown(t *testing.T, when string, want []string, list []*Endpoint) {
	t.Helper()
	got := []string{}
	for _, e := range list {
		got = append(got, endpointLine(e))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("%s: names\n%q, want\n%q", when, got, want)
	}
}

// TestWatchOverflow checks that a watch that is far behind gets a full list.
func TestWatchOverflow(t *testing.T) {
	zone := New(Config{Domain: "roost.internal", Cell: "cell"})
	slow, other := zone.StartWatch(Selection{Owner: "ann", Name: "web"}), zone.StartWatch(Selection{Owner: "bob"})
	zone.Take(slow)
	zone.Take(other)
	const machines, each = 21, 1000
	for i := range machines {
		lines := make([]string, each)
		for j := range lines {
			lines[j] = fmt.Sprintf("1.pool/ann/web %d.1 r1 ready 10.0.0.1", i*each+j)
		}
		ad := MachineAd{Name: fmt.Sprint(i), Lease: time.Minute,
			Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Text: adText("m", lines)}
		if err := zone.SetMachine(time.Unix(1, 0), zone.ReadMachine(time.Unix(1, 0), ad)); err != nil {
			t.Fatal(err)
		}
	}
	if woken := zone.TakeWoken(); len(woken) != 1 || woken[0] != slow {
		t.Errorf("%d watches are woken, want the one of ann", len(woken))
	}
	if u := zone.Take(slow); !u.Full || len(u.Endpoints) != machines*each || len(u.Removed) > 0 {
		t.Errorf("full: %v, %d endpoints, %d removed", u.Full, len(u.Endpoints), len(u.Removed))
	}
	if u := zone.Take(other); u.Full || len(u.Endpoints) > 0 {
		t.Errorf("the watch of another owner got %d endpoints", len(u.Endpoints))
	}
	if u := zone.Take(slow); u.Full || len(u.Endpoints) > 0 {
		t.Errorf("nothing changed, and the watch got %d endpoints", len(u.Endpoints))
	}
}
