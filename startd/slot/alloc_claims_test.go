package slot

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// allocPlay is a machine with one schedd, whose claims are inside allocs.
type allocPlay struct {
	t       *testing.T
	c       *ClaimTable
	now     roost.BootTime
	session uint64
	grant   uint64
	job     uint64
	log     []string // effects that tell of ends
}

func newAllocPlay(t *testing.T) *allocPlay {
	opt := newTestTable(t, QueueOptions{}).opt
	p := &allocPlay{t: t, c: New(opt), now: 1}
	p.connect()
	return p
}

func (p *allocPlay) connect() {
	p.session++
	if err := p.c.Connected(p.now, p.session, "s1", 1, p.session); err != nil {
		p.t.Fatal(err)
	}
}

// ask asks for a claim of so many cores and as many GiB. It is inside an alloc or, with
// 0, a part of the machine.
func (p *allocPlay) ask(cores int, inside ClaimID, alloc bool) (*Claim, error) {
	p.grant++
	r := ClaimRequest{
		Session: p.session, Schedd: "s1", Grant: roost.GrantID{Epoch: 1, ID: p.grant}, Owner: "ann", UID: 7,
		Lease: time.Minute, TokenValid: inside == 0, Alloc: inside, Info: ClaimInfo{Alloc: alloc},
		Resources: roost.Resources{CPU: roost.MilliCPU(cores * 1000), Memory: roost.Bytes(cores) * roost.GiB},
	}
	claim, err := p.c.DecideClaim(p.now, r)
	p.act()
	return claim, err
}

// start has an attempt run on a claim.
func (p *allocPlay) start(claim *Claim) roost.AttemptID {
	p.job++
	a := roost.AttemptID{Task: roost.JobID{Seq: p.job, Host: "s1"}.Task(0), Attempt: 1}
	if err := p.c.Activate(p.now, p.session, "s1", claim.ID, a, AttemptInfo{}); err != nil {
		p.t.Fatal(err)
	}
	p.act()
	return a
}

// act does what is to be done, as the startd would.
func (p *allocPlay) act() {
	p.c.Check()
	for effects, _ := p.c.Todo(p.now); len(effects) > 0; effects, _ = p.c.Todo(p.now) {
		for _, e := range effects {
			switch e := e.(type) {
			case CreateClaim:
				p.c.ClaimCreated(e.Claim.ID)
			case StartAttempt:
				p.c.Started(p.now, e.Claim.ID, e.Attempt)
			case VacateAttempt, ReportExited, ReportLost:
				p.log = append(p.log, effectText(e))
			}
		}
		p.c.Check()
	}
}

// end notes that an attempt has ended, and that its schedd knows.
func (p *allocPlay) end(claim *Claim) {
	a := claim.Attempt
	p.c.Ended(p.now, claim.ID, a)
	p.act()
	p.c.Acknowledged(p.session, "s1", a)
	p.act()
}

// openAlloc is an alloc of three cores that is open.
func (p *allocPlay) openAlloc() *Claim {
	alloc, err := p.ask(3, 0, true)
	if err != nil {
		p.t.Fatal(err)
	}
	p.start(alloc)
	return alloc
}

func (p *allocPlay) wantLog(want ...string) {
	p.t.Helper()
	if !slices.Equal(p.log, want) {
		p.t.Errorf("got\n%s\nwant\n%s", strings.Join(p.log, "\n"), strings.Join(want, "\n"))
	}
	p.log = nil
}

func TestAllocHoldsWhatIsInside(t *testing.T) {
	p := newAllocPlay(t)
	alloc := p.openAlloc()
	free := p.c.free.LeftForBatch()
	one, err := p.ask(2, alloc.ID, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.c.free.LeftForBatch(); got != free {
		t.Errorf("free beside the alloc: got %v, want %v", got, free)
	}
	if _, err := p.ask(2, alloc.ID, false); !errors.Is(err, roost.Exhausted) {
		t.Errorf("more than the alloc has left: %v", err)
	}
	two, err := p.ask(1, alloc.ID, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.ask(1, two.ID, false); !errors.Is(err, roost.NotFound) {
		t.Errorf("inside a claim that is inside: %v", err)
	}
	p.start(one)
	p.end(one) // it is idle, and holds its part
	if _, err := p.ask(1, alloc.ID, false); !errors.Is(err, roost.Exhausted) {
		t.Errorf("what an idle claim holds: %v", err)
	}
	p.c.Release(p.session, "s1", one.ID)
	p.act()
	if _, err := p.ask(2, alloc.ID, false); err != nil {
		t.Error(err)
	}
}

func TestAllocOfOthersIsRefused(t *testing.T) {
	p := newAllocPlay(t)
	alloc := p.openAlloc()
	plain, err := p.ask(1, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	p.start(plain)
	if _, err := p.ask(1, plain.ID, false); !errors.Is(err, roost.NotFound) {
		t.Errorf("inside a claim that is no alloc: %v", err)
	}
	r := ClaimRequest{Session: p.session, Schedd: "s1", Grant: roost.GrantID{ID: 99}, Owner: "bob", UID: 8,
		Lease: time.Minute, Alloc: alloc.ID, Resources: roost.Resources{CPU: 1000}}
	if _, err := p.c.DecideClaim(p.now, r); err != nil {
		t.Errorf("inside another user's, whose schedd wants that: %v", err)
	}
	if err := p.c.Connected(p.now, 50, "s2", 1, 1); err != nil {
		t.Fatal(err)
	}
	r.Session, r.Schedd, r.Owner, r.UID = 50, "s2", "ann", 7
	if _, err := p.c.DecideClaim(p.now, r); !errors.Is(err, roost.NotFound) {
		t.Errorf("inside another schedd's: %v", err)
	}
	p.act()
}

func TestAllocEndsLast(t *testing.T) {
	p := newAllocPlay(t)
	alloc := p.openAlloc()
	one, _ := p.ask(1, alloc.ID, false)
	p.start(one)
	idle, _ := p.ask(1, alloc.ID, false)
	p.c.RequestVacate(p.session, "s1", alloc.Attempt, Removed, false, "by ann")
	p.act()
	p.wantLog("vacate 2[0].s1/1 cause 2 fast false: its alloc ends: by ann", "tell lost 3: its alloc ends: by ann")
	if idle.State != Gone {
		t.Errorf("an idle claim inside is %v", idle.State)
	}
	if _, err := p.ask(1, alloc.ID, false); !errors.Is(err, roost.Unavailable) {
		t.Errorf("into an alloc that ends: %v", err)
	}
	p.c.RequestVacate(p.session, "s1", alloc.Attempt, Removed, true, "at once")
	p.act()
	p.wantLog("vacate 2[0].s1/1 cause 2 fast true: its alloc ends: at once")
	p.c.Ended(p.now, one.ID, one.Attempt)
	p.act()
	p.wantLog("tell exited 2[0].s1/1", "vacate 1[0].s1/1 cause 2 fast true: at once")
}

func TestAllocWhoseProcessDies(t *testing.T) {
	p := newAllocPlay(t)
	alloc := p.openAlloc()
	one, _ := p.ask(1, alloc.ID, false)
	p.start(one)
	free := p.c.free.LeftForBatch()
	p.c.ClaimFailed(p.now, alloc.ID, "its starter has ended")
	p.act()
	p.wantLog("vacate 2[0].s1/1 cause 3 fast false: its alloc ends: the process that kept it open has ended")
	if got := p.c.free.LeftForBatch(); got != free {
		t.Errorf("free while something is inside: got %v, want %v", got, free)
	}
	p.c.Ended(p.now, one.ID, one.Attempt)
	p.act()
	p.wantLog("tell exited 2[0].s1/1", "tell exited 1[0].s1/1")
	if got := p.c.free.LeftForBatch(); got.CPU != 4000 {
		t.Errorf("free then: %v", got)
	}
}

// TestAllocsAtRandom plays claims inside allocs and their ends; act checks the books.
func TestAllocsAtRandom(t *testing.T) {
	inside := 0
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { inside += playAllocs(t, rand.New(rand.NewPCG(seed, 5))) })
	}
	if inside < 500 {
		t.Errorf("only %d claims were inside allocs: the play is of no use", inside)
	}
}

func playAllocs(t *testing.T, r *rand.Rand) (inside int) {
	p := newAllocPlay(t)
	pick := func(ok func(*Claim) bool) *Claim {
		some := slices.DeleteFunc(p.c.Claims(), func(c *Claim) bool { return !ok(c) })
		if len(some) == 0 {
			return nil
		}
		return some[r.IntN(len(some))]
	}
	for range 200 {
		p.now += roost.BootTime(r.IntN(3000)) * time.Millisecond
		claim := pick(func(*Claim) bool { return true })
		switch what := r.IntN(12); {
		case what < 2:
			p.ask(1+r.IntN(3), 0, r.IntN(3) > 0)
		case claim == nil:
		case what < 5:
			if _, err := p.ask(1+r.IntN(2), claim.ID, false); err == nil {
				inside++
			}
		case what < 8 && claim.State == Idle && claim.endReason == "":
			p.start(claim)
		case what == 8 && claim.hasLiveAttempt():
			p.c.RequestVacate(p.session, "s1", claim.Attempt, Removed, r.IntN(2) == 0, "by ann")
		case what == 9 && claim.hasLiveAttempt():
			p.end(claim)
		case what == 10 && r.IntN(3) == 0:
			p.c.ClaimFailed(p.now, claim.ID, "its starter has ended")
		case what == 10:
			p.c.Release(p.session, "s1", claim.ID)
		case r.IntN(4) == 0:
			p.restart()
		default:
			p.c.RenewClaims(p.now, p.session, "s1", LeaseRenewal{})
		}
		p.act()
	}
	return inside
}

// restart makes the table anew from what the startd before has left.
func (p *allocPlay) restart() {
	opt, all := p.c.opt, p.c.Claims()
	opt.FirstID = p.c.ids.next
	p.c = New(opt)
	for _, old := range all {
		own := Claim{ID: old.ID, Grant: old.Grant, Schedd: old.Schedd, Owner: old.Owner, UID: old.UID, Info: old.Info,
			Inside: old.Inside, Resources: old.Resources, Lease: p.now + old.LeasePeriod, LeasePeriod: old.LeasePeriod}
		if old.hasPlacement {
			own.Placement = clone(old.Placement)
		}
		if old.hasLiveAttempt() || old.State == Exited {
			own.State, own.Attempt, own.ProcessesGone = Busy, old.Attempt, old.State == Exited
			own.Running = !own.ProcessesGone
		} else {
			own.State = Idle
		}
		if err := p.c.Adopt(p.now, own); err == nil && own.ProcessesGone {
			p.c.Ended(p.now, own.ID, own.Attempt)
		}
		p.c.Check()
	}
	p.connect()
}

func TestAllocShares(t *testing.T) {
	alloc := &Claim{Placement: gpu.Placement{Shares: []gpu.DeviceShare{
		{Device: 2, Memory: 8 * roost.GiB, Whole: true}, {Device: 5, Memory: 8 * roost.GiB, Whole: true}}}}
	shared := roost.Resources{GPUs: 1, GPUMemory: 5 * roost.GiB}
	first, ok := allocShares(alloc, nil, shared)
	if want := []gpu.DeviceShare{{Device: 2, Memory: 5 * roost.GiB}}; !ok || !slices.Equal(first, want) {
		t.Fatalf("got %v, want %v", first, want)
	}
	inside := []*Claim{{Placement: gpu.Placement{Shares: first}}}
	second, ok := allocShares(alloc, inside, shared)
	if want := []gpu.DeviceShare{{Device: 5, Memory: 5 * roost.GiB}}; !ok || !slices.Equal(second, want) {
		t.Fatalf("got %v, want %v", second, want)
	}
	if whole, ok := allocShares(alloc, inside, roost.Resources{GPUs: 1}); !ok || whole[0].Device != 5 {
		t.Errorf("a whole one: %v, %v", whole, ok)
	}
	inside = append(inside, &Claim{Placement: gpu.Placement{Shares: second}})
	if _, ok := allocShares(alloc, inside, shared); ok {
		t.Error("a share is given twice")
	}
	if _, ok := allocShares(alloc, inside, roost.Resources{GPUs: 1}); ok {
		t.Error("a device that is shared is given whole")
	}
}
