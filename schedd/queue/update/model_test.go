package update

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// attemptPlan is how the attempts of a revision behave.
type attemptPlan struct {
	ready time.Duration // after its begin; below 0: never
	dies  time.Duration // after its begin; 0: not
}

// model is a job with its tasks, as simple as can be.
type model struct {
	t        *testing.T
	now      time.Time
	count    int
	update   Update
	facts    []TaskFact
	want     []uint32 // the revision of the next attempt
	policies map[uint32]*Policy
	behave   map[uint32]attemptPlan
	noRoom   map[int]bool // tasks that find no machine
	stuck    map[int]bool // tasks that stay as they are
	stopTime time.Duration
	changed  []time.Time // when a task came into its condition
	stops    []string
	history  []string // the states of the update
	surge    int      // the most that a policy allowed since there were such tasks
	charged  bool     // a planned cause has taken a ready task down since the last check
	stopped  int      // running tasks that the update has stopped
	maxTasks int      // alive at one time
	tally    *Tally
	tallied  []TaskFact // what the tally was told of
}

func newModel(t *testing.T, count int) *model {
	p := DefaultPolicy()
	m := &model{t: t, now: time.Unix(1_800_000_000, 0), count: count, policies: map[uint32]*Policy{1: &p},
		behave: map[uint32]attemptPlan{}, noRoom: map[int]bool{}, stuck: map[int]bool{},
		stopTime: 2 * time.Second}
	m.tally = NewTally(func(i int) TaskFact { return m.facts[i] })
	m.resize(count)
	m.run(30 * time.Second)
	return m
}

// plan asks once, and checks that the tally comes to what a look at each task does. Only
// tasks that have changed are marked.
func (m *model) plan() Plan {
	m.t.Helper()
	for i := range m.facts {
		if i >= len(m.tallied) || m.facts[i] != m.tallied[i] {
			m.tally.Mark(i)
		}
	}
	m.tallied = slices.Clone(m.facts)
	p, tasks := m.policy(), len(m.facts)
	budget, wanted := m.tally.Budget(&m.update, p, m.count, tasks, m.now.UnixNano()),
		m.budget()
	if budget != wanted {
		m.t.Fatalf("the budget is %+v, want %+v, with %+v", budget, wanted, m.facts)
	}
	got := m.tally.Decide(m.update, p, m.count, tasks, m.now)
	want := naiveDecide(m.update, p, m.count, slices.Clone(m.facts), m.now)
	if late := want.Again != 0 && (got.Again == 0 || got.Again > want.Again); late && m.update.State.IsActive() {
		m.t.Fatalf("it is to be asked again at %d, want %d at the latest", got.Again, want.Again)
	}
	if want.Again = got.Again; !reflect.DeepEqual(got, want) {
		m.t.Fatalf("got %+v, want %+v, with %+v, %+v", got, want, *p, m.facts)
	}
	return got
}

func (m *model) budget() Budget { return naiveBudget(m.policy(), m.count, m.facts, m.now.UnixNano()) }

func (m *model) resize(n int) {
	for len(m.facts) < n {
		m.facts = append(m.facts, TaskFact{Revision: max(m.update.Target(), 1), Since: m.now.UnixNano()})
		m.want, m.changed = append(m.want, max(m.update.Target(), 1)), append(m.changed, m.now)
	}
	m.facts, m.want, m.changed = m.facts[:n], m.want[:n], m.changed[:n]
}

// policy is the one that counts now.
func (m *model) policy() *Policy {
	if m.update.State == None {
		return m.policies[1]
	}
	return m.policies[m.update.Target()]
}

func (m *model) set(i int, c Condition) {
	f := &m.facts[i]
	if (f.Condition == Ready) != (c == Ready) {
		f.Since = m.now.UnixNano()
	}
	f.Condition, m.changed[i] = c, m.now
	switch c {
	case Down:
		f.Began = 0
		if f.Revision != m.want[i] {
			f.Revision, f.Exits = m.want[i], 0
		}
	case Starting:
		f.Began, f.Revision = m.now.UnixNano(), m.want[i]
	case Ready:
		f.Planned, f.WasReady = false, true
	default:
	}
}

// live lets a second pass for each task.
func (m *model) live() {
	for i := range m.facts {
		f, since := &m.facts[i], m.now.Sub(m.changed[i])
		b, ok := m.behave[f.Revision]
		if !ok {
			b = attemptPlan{ready: time.Second}
		}
		age := time.Duration(m.now.UnixNano() - f.Began)
		if m.stuck[i] {
			continue
		}
		switch f.Condition {
		case Down:
			if !m.noRoom[i] && since >= time.Second {
				m.set(i, Starting)
			}
		case Starting, Unready, Ready:
			switch {
			case b.dies > 0 && age >= b.dies:
				m.exit(i)
			case f.Condition != Ready && b.ready >= 0 && age >= b.ready:
				m.set(i, Ready)
			}
		case Leaving:
			if since >= m.stopTime {
				m.set(i, Down)
			}
		case Lost:
			if since >= 15*time.Second {
				m.set(i, Down)
			}
		}
	}
}

// exit ends the attempt of a task by itself.
func (m *model) exit(i int) {
	m.facts[i].Exits++
	m.set(i, Down)
}

// decide asks once and carries out what is decided.
func (m *model) decide() {
	m.check()
	before := m.update.State
	plan := m.plan()
	if again := m.plan(); !reflect.DeepEqual(plan, again) {
		m.t.Fatalf("asked twice: %v, %v", plan, again)
	}
	if !plan.Changed && !sameUpdate(plan.Update, m.update) {
		m.t.Fatalf("it changed from %v to %v, and says that it did not", m.update, plan.Update)
	}
	for _, i := range plan.Update.Failed {
		if !m.update.hasFailed(i) {
			m.facts[i].Planned = false
		}
	}
	m.update = plan.Update
	m.noteUndo(before)
	m.surge = max(m.surge, m.policy().surge(m.count))
	for _, r := range plan.Replace {
		m.replace(r)
	}
	if before != None {
		m.resize(m.count + plan.Surge)
	}
	m.note(before)
	m.check()
}

// noteUndo notes which tasks have nothing to go back from.
func (m *model) noteUndo(before State) {
	for i := range m.facts {
		if m.update.State == Undoing && !before.isUndo() {
			m.facts[i].Untouched = m.facts[i].Revision == m.update.From
		}
	}
}

func sameUpdate(a, b Update) bool {
	same := slices.Equal(a.Failed, b.Failed)
	a.Failed, b.Failed = nil, nil
	return same && reflect.DeepEqual(a, b)
}

func (m *model) note(before State) {
	if m.update.State != before {
		m.history = append(m.history, m.update.State.String())
	}
}

func (m *model) replace(r Replacement) {
	f := &m.facts[r.Index]
	m.want[r.Index], f.Untouched = m.update.Target(), false
	if f.hasAttempt() != r.Stop {
		m.t.Fatalf("%v, and the task is %+v", r, *f)
	}
	if r.Planned {
		f.Planned, m.charged = true, true
	}
	if !r.Stop {
		f.Revision, f.Exits = m.want[r.Index], 0
		return
	}
	if m.update.State == Rolling && r.Index < m.count {
		m.stopped++
	}
	m.stops = append(m.stops, fmt.Sprint(r.Index))
	m.set(r.Index, Leaving)
	f.Revision, f.Exits = m.want[r.Index], 0 // it is of that from now on
}

// check states the invariants.
func (m *model) check() {
	m.t.Helper()
	p := m.policy()
	b := m.budget()
	if m.charged && b.Planned+b.Failing > b.Limit+b.Spare {
		m.t.Fatalf("S1: %+v %+v %+v", b, m.update, m.facts)
	}
	m.charged = false
	alive := 0
	for _, f := range m.facts {
		if f.Condition != Down {
			alive++
		}
	}
	if alive > m.count+m.surge {
		m.t.Fatalf("S2: %d tasks live, and %d+%d may", alive, m.count, m.surge)
	}
	undone := m.update.State.isUndo() || m.update.State == Closed // to a revision that may say something else
	if p.Disruptions >= 0 && !undone && m.stopped > p.Disruptions {
		m.t.Fatalf("S3: %d tasks were stopped, and %d may be", m.stopped, p.Disruptions)
	}
	if m.update.State == Done && len(m.update.Tasks) == 0 {
		for i, f := range m.facts[:m.count] {
			if f.Revision != m.update.To {
				m.t.Fatalf("S4: task %d is of revision %d, and the update is done", i, f.Revision)
			}
		}
	}
	if m.update.State == Undone {
		for i, f := range m.facts[:m.count] {
			if f.Revision != m.update.From {
				m.t.Fatalf("S5: task %d is of revision %d, and the update is undone", i, f.Revision)
			}
		}
	}
}

// run lets time pass.
func (m *model) run(d time.Duration) {
	m.t.Helper()
	for end := m.now.Add(d); m.now.Before(end); m.now = m.now.Add(time.Second) {
		m.live()
		m.decide()
		m.maxTasks = max(m.maxTasks, len(m.facts))
	}
}

// begin begins an update to a revision.
func (m *model) begin(to uint32, p Policy, behave attemptPlan) {
	m.policies[to], m.behave[to] = &p, behave
	before, from := m.update.State, uint32(1)
	if m.update.State != None {
		from = m.update.Target()
	}
	m.update = Begin(m.update, from, to, &p, m.now.UnixNano())
	m.stopped = 0
	if len(m.facts) == m.count {
		m.surge = 0
	}
	m.surge = max(m.surge, p.surge(m.count))
	m.note(before)
	m.decide()
}

// command gives a command that must be accepted.
func (m *model) command(c Command) {
	m.t.Helper()
	before := m.update.State
	u, err := m.update.After(c, m.mixed(), m.now.UnixNano())
	if err != nil {
		m.t.Fatalf("%v: %v", c, err)
	}
	m.update = u
	m.noteUndo(before)
	m.note(before)
	m.decide()
}

func (m *model) mixed() bool {
	return slices.ContainsFunc(m.facts[:m.count], func(f TaskFact) bool { return f.Revision != m.facts[0].Revision })
}

// expect checks the states that the update went through and the revisions of the tasks.
func (m *model) expect(history, revisions string) {
	m.t.Helper()
	if got := strings.Join(m.history, " "); got != history {
		m.t.Errorf("the update was %s (%s), want %s", got, m.update.Reason, history)
	}
	var got strings.Builder
	for _, f := range m.facts {
		fmt.Fprint(&got, f.Revision)
	}
	if got.String() != revisions {
		m.t.Errorf("the tasks are of revisions %s, want %s", got.String(), revisions)
	}
}
