package match

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// simulatedDay is a pool over a day of virtual time. Its users always want more, tasks
// take a while, and fair share works as in the negotiator.
type simulatedDay struct {
	t            *testing.T
	now          time.Time
	rng          *rand.Rand
	accountant   *fairshare.Accountant
	matcher      *Matcher
	cell         *Snapshot
	users        []*simulatedUser
	endsBySecond map[int64][]simulatedTask // by unix second
	total        roost.Resources
}

type simulatedUser struct {
	fairshare.Submitter
	request     *Request
	usage       roost.Resources
	coreSeconds float64 // core-seconds
	waited      time.Duration
	longest     time.Duration // without a running task
}

type simulatedTask struct {
	user      *simulatedUser
	machine   int
	resources roost.Resources
}

// newDay returns a pool of machines with sixteen cores each.
func newDay(t *testing.T, seed uint64, machines int) *simulatedDay {
	d := &simulatedDay{
		t: t, now: time.Unix(1_000_000, 0), rng: rand.New(rand.NewPCG(seed, 11)),
		accountant: fairshare.NewAccountant(fairshare.HalfLife), matcher: NewMatcher(),
		cell: &Snapshot{Shares: map[fairshare.Submitter]SubmitterShare{}}, endsBySecond: map[int64][]simulatedTask{},
	}
	for i := range machines {
		r := roost.Resources{CPU: 16_000, Memory: 64 * roost.GiB}
		name := fmt.Sprintf("m%02d", i)
		d.cell.Machines = append(d.cell.Machines, NewMachine(name, 1, 1, machineAd(t, name, r, r, "")))
		d.total = d.total.Add(r)
	}
	return d
}

// addUser adds a user who always wants more tasks of a number of cores.
func (d *simulatedDay) addUser(group, owner string, factor float64, cores roost.MilliCPU) *simulatedUser {
	u := &simulatedUser{Submitter: fairshare.Submitter{Group: group, Owner: owner}}
	class, err := NewClass("", u.Submitter, roost.BatchBand, roost.Resources{CPU: 1000 * cores, Memory: roost.GiB})
	if err != nil {
		d.t.Fatal(err)
	}
	u.request = &Request{Key: RequestKey{"s", uint64(len(d.users))}, Submitter: u.Submitter, Band: roost.BatchBand,
		Class: class}
	d.users, d.cell.Requests = append(d.users, u), append(d.cell.Requests, u.request)
	d.accountant.SetFactor(d.now, u.Submitter, factor)
	return u
}

// run advances time by length in steps of ten seconds. Tasks take one to twenty minutes.
func (d *simulatedDay) run(length time.Duration) {
	const step = 10 * time.Second
	for end := d.now.Add(length); d.now.Before(end); d.now = d.now.Add(step) {
		for _, task := range d.endsBySecond[d.now.Unix()] {
			task.user.usage = task.user.usage.Sub(task.resources)
			d.addFree(task.machine, task.resources)
		}
		delete(d.endsBySecond, d.now.Unix())
		d.cell.Now = d.now
		for _, u := range d.users {
			u.request.Wanted = 1000
			d.cell.Shares[u.Submitter] = SubmitterShare{EffectivePriority: d.accountant.EffectivePriority(d.now,
				u.Submitter), Usage: u.usage}
		}
		for _, g := range d.matcher.Plan(d.cell).Grants {
			d.startTask(g)
		}
		for _, u := range d.users {
			d.accountant.SetUsage(d.now, u.Submitter, fairshare.CoresWorth(u.usage, d.total))
			u.coreSeconds += fairshare.CoresWorth(u.usage, d.total) * step.Seconds()
			if u.waited += step; u.usage.CPU > 0 {
				u.waited = 0
			}
			u.longest = max(u.longest, u.waited)
		}
	}
}

func (d *simulatedDay) startTask(g Grant) {
	for i, m := range d.cell.Machines {
		if m != g.Machine {
			continue
		}
		for range g.Units {
			u, r := d.users[g.Request.Key.ID], g.Request.Class.Resources
			u.usage = u.usage.Add(r)
			d.addFree(i, roost.Resources{}.Sub(r))
			end := d.now.Unix() + int64(10*(6+d.rng.IntN(114)))
			d.endsBySecond[end] = append(d.endsBySecond[end], simulatedTask{u, i, r})
		}
		return
	}
}

// addFree returns resources to a machine, or takes them if negative.
func (d *simulatedDay) addFree(i int, r roost.Resources) {
	old := d.cell.Machines[i]
	m := *old
	m.Free, m.streamFree, m.inMatcher = m.Free.Add(r), m.streamFree+r.CPU, nil
	m.Sequence++
	d.cell.Machines[i] = &m
}

// startCounting resets the counters of all users.
func (d *simulatedDay) startCounting() {
	for _, u := range d.users {
		u.coreSeconds, u.longest = 0, 0
	}
}

// TestDayOfTwoUsers checks the use of two users who want everything, one with twice the
// factor of the other. At the end of a day they have used the pool as the formulae say,
// within 1 %, although tasks take time, and neither was ever without a task.
//
// HTCondor's shares depend on past use as well as on the factor: shares are inversely
// proportional to π·f, and π decays towards the share. Both are constant where π1·f1·s1 =
// π2·f2·s2 with π = s, that is s ∝ 1/√f; from equal priorities the shares move from 1/f
// to that. The test computes this path by the formulae themselves, minute by minute.
func TestDayOfTwoUsers(t *testing.T) {
	d := newDay(t, 1, 20)
	ann, bob := d.addUser("", "ann", 1000, 1), d.addUser("", "bob", 2000, 1)
	d.run(time.Hour) // until every core is in use, and no longer only by the first to come
	pool := d.total.CPU.Cores()
	pa, pb := d.accountant.RealPriority(d.now, ann.Submitter), d.accountant.RealPriority(d.now, bob.Submitter)
	d.startCounting()
	var wantAnn, wantBob float64
	for range 24 * 60 {
		ea, eb := 1/(max(fairshare.LeastPriority, pa)*1000), 1/(max(fairshare.LeastPriority, pb)*2000)
		sa, sb := pool*ea/(ea+eb), pool*eb/(ea+eb)
		wantAnn, wantBob = wantAnn+60*sa, wantBob+60*sb
		beta := math.Exp2(-60 / fairshare.HalfLife.Seconds())
		pa, pb = beta*pa+(1-beta)*sa, beta*pb+(1-beta)*sb
	}
	d.run(24 * time.Hour)
	checkUsed(t, ann, wantAnn)
	checkUsed(t, bob, wantBob)
}

// TestDayOfTwoGroups checks two groups with quotas of a quarter and three quarters. After
// a day they have used exactly that, within 1 %, however many users each has, and inside
// a group users share by their factors.
func TestDayOfTwoGroups(t *testing.T) {
	d := newDay(t, 2, 20)
	d.cell.Groups = []fairshare.AccountingGroup{{Name: "chem", Quota: 0.25, Dynamic: true, AcceptsSurplus: true},
		{Name: "physics", Quota: 0.75, Dynamic: true, AcceptsSurplus: true}}
	chem := []*simulatedUser{d.addUser("chem", "ann", 1000, 1), d.addUser("chem", "bob", 1000, 1),
		d.addUser("chem", "cid", 1000, 2)}
	physics := d.addUser("physics", "dan", 1000, 1)
	d.run(time.Hour)
	d.startCounting()
	d.run(24 * time.Hour)
	pool := d.total.CPU.Cores() * 86400
	checkUsed(t, physics, 0.75*pool)
	sum := 0.0
	for _, u := range chem {
		sum += u.coreSeconds
		checkUsed(t, u, 0.25*pool/3)
	}
	if math.Abs(sum-0.25*pool) > 0.01*0.25*pool {
		t.Errorf("chem used %.0f core-seconds, want %.0f", sum, 0.25*pool)
	}
}

// checkUsed checks that a user has used what the formulae give, within 1 %, and was never
// without a task.
func checkUsed(t *testing.T, u *simulatedUser, want float64) {
	t.Helper()
	if off := u.coreSeconds/want - 1; math.Abs(off) > 0.01 {
		t.Errorf("%v used %.0f core-seconds, want %.0f: %+.2f %%", u.Submitter, u.coreSeconds, want, 100*off)
	}
	if u.longest > 0 {
		t.Errorf("%v had nothing for %v", u.Submitter, u.longest)
	}
	t.Logf("%v: %.0f of %.0f", u.Submitter, u.coreSeconds, want)
}
