package match

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/share"
)

// day is a pool over a day of virtual time: users who always want more, tasks that take a while, fair share as the negotiator keeps it.
type day struct {
	t       *testing.T
	now     time.Time
	rng     *rand.Rand
	book    *share.Book
	matcher *Matcher
	cell    *Snapshot
	users   []*dayUser
	ends    map[int64][]dayTask // by unix second
	total   roost.Resources
}

type dayUser struct {
	share.Submitter
	request *Request
	held    roost.Resources
	took    float64 // core-seconds
	waited  time.Duration
	longest time.Duration // without anything running
}

type dayTask struct {
	user    *dayUser
	machine int
	r       roost.Resources
}

// newDay is a pool of so many machines of sixteen cores.
func newDay(t *testing.T, seed uint64, machines int) *day {
	d := &day{
		t: t, now: time.Unix(1_000_000, 0), rng: rand.New(rand.NewPCG(seed, 11)), book: share.NewBook(share.HalfLife), matcher: NewMatcher(),
		cell: &Snapshot{Standing: map[share.Submitter]Standing{}}, ends: map[int64][]dayTask{},
	}
	for i := range machines {
		r := roost.Resources{CPU: 16_000, Memory: 64 * roost.GiB}
		name := fmt.Sprintf("m%02d", i)
		d.cell.Machines = append(d.cell.Machines, NewMachine(name, 1, 1, machineAd(t, name, r, r, "")))
		d.total = d.total.Add(r)
	}
	return d
}

// user adds one who wants tasks of so many cores without end.
func (d *day) user(group, owner string, factor float64, cores roost.MilliCPU) *dayUser {
	u := &dayUser{Submitter: share.Submitter{Group: group, Owner: owner}}
	class, err := NewClass("", u.Submitter, roost.Batch, roost.Resources{CPU: 1000 * cores, Memory: roost.GiB})
	if err != nil {
		d.t.Fatal(err)
	}
	u.request = &Request{Key: Key{"s", uint64(len(d.users))}, Submitter: u.Submitter, Band: roost.Batch, Class: class}
	d.users, d.cell.Requests = append(d.users, u), append(d.cell.Requests, u.request)
	d.book.SetFactor(d.now, u.Submitter, factor)
	return u
}

// run lets so much time pass, in steps of ten seconds. Tasks take from one to twenty minutes.
func (d *day) run(length time.Duration) {
	const step = 10 * time.Second
	for end := d.now.Add(length); d.now.Before(end); d.now = d.now.Add(step) {
		for _, task := range d.ends[d.now.Unix()] {
			task.user.held = task.user.held.Sub(task.r)
			d.free(task.machine, task.r)
		}
		delete(d.ends, d.now.Unix())
		d.cell.Now = d.now
		for _, u := range d.users {
			u.request.Wanted = 1000
			d.cell.Standing[u.Submitter] = Standing{Effective: d.book.Effective(d.now, u.Submitter), Held: u.held}
		}
		for _, g := range d.matcher.Plan(d.cell).Grants {
			d.start(g)
		}
		for _, u := range d.users {
			d.book.Hold(d.now, u.Submitter, share.Weight(u.held, d.total))
			u.took += share.Weight(u.held, d.total) * step.Seconds()
			if u.waited += step; u.held.CPU > 0 {
				u.waited = 0
			}
			u.longest = max(u.longest, u.waited)
		}
	}
}

func (d *day) start(g Grant) {
	for i, m := range d.cell.Machines {
		if m != g.Machine {
			continue
		}
		for range g.Units {
			u, r := d.users[g.Request.Key.ID], g.Request.Class.Resources
			u.held = u.held.Add(r)
			d.free(i, roost.Resources{}.Sub(r))
			end := d.now.Unix() + int64(10*(6+d.rng.IntN(114)))
			d.ends[end] = append(d.ends[end], dayTask{u, i, r})
		}
		return
	}
}

// free gives a machine's resources back, or takes them.
func (d *day) free(i int, r roost.Resources) {
	old := d.cell.Machines[i]
	m := *old
	m.Free, m.stream, m.in = m.Free.Add(r), m.stream+r.CPU, nil
	m.Sequence++
	d.cell.Machines[i] = &m
}

// forget begins to count.
func (d *day) forget() {
	for _, u := range d.users {
		u.took, u.longest = 0, 0
	}
}

// TestDayOfTwoUsers holds that two users who want everything, one with twice the factor of the other, have used the pool two to one at the end of a
// day, within 1 %, in spite of tasks that take their time; and that neither ever had to be without.
//
// HTCondor's shares follow from what was used as well as from the factor: shares go inversely to π·f, and π decays towards the share. Both hold still
// where π1·f1·s1 = π2·f2·s2 with π = s, that is s ∝ 1/√f; on the way there from equal priorities the shares move from 1/f to that. The test works
// that way out by the formulae themselves, second by second.
func TestDayOfTwoUsers(t *testing.T) {
	d := newDay(t, 1, 20)
	ann, bob := d.user("", "ann", 1000, 1), d.user("", "bob", 2000, 1)
	d.run(time.Hour) // until every core is in use, and no longer by those who came first
	pool := d.total.CPU.Cores()
	pa, pb := d.book.Real(d.now, ann.Submitter), d.book.Real(d.now, bob.Submitter)
	d.forget()
	var wantAnn, wantBob float64
	for range 24 * 60 {
		ea, eb := 1/(max(share.LeastPriority, pa)*1000), 1/(max(share.LeastPriority, pb)*2000)
		sa, sb := pool*ea/(ea+eb), pool*eb/(ea+eb)
		wantAnn, wantBob = wantAnn+60*sa, wantBob+60*sb
		beta := math.Exp2(-60 / share.HalfLife.Seconds())
		pa, pb = beta*pa+(1-beta)*sa, beta*pb+(1-beta)*sb
	}
	d.run(24 * time.Hour)
	within(t, ann, wantAnn)
	within(t, bob, wantBob)
}

// TestDayOfTwoGroups holds that two groups with quotas of a quarter and three quarters have used just that after a day, within 1 %, whoever has how many
// users, and that inside a group users share by their factors.
func TestDayOfTwoGroups(t *testing.T) {
	d := newDay(t, 2, 20)
	d.cell.Groups = []share.Group{{Name: "chem", Quota: 0.25, Dynamic: true, Surplus: true}, {Name: "physics", Quota: 0.75, Dynamic: true, Surplus: true}}
	chem := []*dayUser{d.user("chem", "ann", 1000, 1), d.user("chem", "bob", 1000, 1), d.user("chem", "cid", 1000, 2)}
	physics := d.user("physics", "dan", 1000, 1)
	d.run(time.Hour)
	d.forget()
	d.run(24 * time.Hour)
	pool := d.total.CPU.Cores() * 86400
	within(t, physics, 0.75*pool)
	sum := 0.0
	for _, u := range chem {
		sum += u.took
		within(t, u, 0.25*pool/3)
	}
	if math.Abs(sum-0.25*pool) > 0.01*0.25*pool {
		t.Errorf("chem used %.0f core-seconds, want %.0f", sum, 0.25*pool)
	}
}

// within holds that a user has used what the formulae give, within 1 %, and never waited long.
func within(t *testing.T, u *dayUser, want float64) {
	t.Helper()
	if off := u.took/want - 1; math.Abs(off) > 0.01 {
		t.Errorf("%v used %.0f core-seconds, want %.0f: %+.2f %%", u.Submitter, u.took, want, 100*off)
	}
	if u.longest > 0 {
		t.Errorf("%v had nothing for %v", u.Submitter, u.longest)
	}
	t.Logf("%v: %.0f of %.0f", u.Submitter, u.took, want)
}
