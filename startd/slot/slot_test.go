package slot

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/script"
)

// newTestTable is a core of 4 cores, 8 GiB and a policy.
func newTestTable(t testing.TB, queue QueueOptions) *ClaimTable {
	t.Helper()
	ad, err := classad.Parse(
		`[Name = "n1"; Start = TARGET.Owner isnt "eve"; Requirements = Start; Rank = TARGET.Owner is "zoe" ? 7.5 : 0]`,
	)
	if err != nil {
		t.Fatal(err)
	}
	return New(TableOptions{
		Units: []gpu.ResourceUnit{{Name: "shared", NUMA: -1, CPU: 4000, Memory: 8 * roost.GiB}}, Ad: ad, FirstID: 1,
		ExitRetention: time.Hour, Queue: queue,
	})
}

// scriptRunner does the steps of a story.
type scriptRunner struct {
	t    *testing.T
	core *ClaimTable
	now  roost.BootTime
}

func TestStories(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func(script.ScriptCommand) string {
		s := &scriptRunner{t: t, core: newTestTable(t, QueueOptions{})}
		return s.step
	})
}

// step is a command, its words "name=value", and what follows: the error, the effects,
// and with "state" the books.
func (s *scriptRunner) step(step script.ScriptCommand) string {
	w := words(step.Args)
	var out strings.Builder
	if err := s.runStep(step.Command, w); err != nil {
		fmt.Fprintf(&out, "error: %v\n", err)
	}
	effects, wake := s.core.Todo(s.now)
	s.core.Check()
	s.core.invariants().checkOvercommit()
	s.core.invariants().checkOwnerLimits()
	for _, e := range effects {
		fmt.Fprintln(&out, effectText(e))
	}
	if step.Command == "state" {
		for i := range s.core.free.Len() {
			fmt.Fprintf(&out, "%s: %v free\n", s.core.free.Unit(i).Name, s.core.free.UnitFree(i, gpu.BatchClass))
		}
		s.showReclaimable(&out)
		for id := range s.core.ids.next {
			if c, ok := s.core.Claim(id); ok {
				fmt.Fprintf(&out, "%v %v lease %v", c, attemptText(c), c.Lease)
				for _, v := range c.victims {
					fmt.Fprintf(&out, ", waits until claim %d has gone", v.ID)
				}
				out.WriteByte('\n')
			}
		}
		for _, q := range s.core.queues {
			for i, c := range q.claims {
				fmt.Fprintf(&out, "waits %d: claim %d\n", i+1, c.ID)
			}
		}
		if wake != noDeadline {
			fmt.Fprintf(&out, "wake %v\n", wake)
		}
	}
	if step.Command == "claims" {
		s.claims(&out, w)
	}
	if out.Len() == 0 {
		return "nothing"
	}
	return out.String()
}

func attemptText(c *Claim) string {
	if c.Attempt.Task.Job.IsZero() {
		return "empty"
	}
	return c.Attempt.String()
}

// effectText is an effect in one line.
func effectText(e Effect) string {
	switch e := e.(type) {
	case CreateClaim:
		return fmt.Sprintf("make %d", e.Claim.ID)
	case RecordPlacement:
		return fmt.Sprintf("place %d", e.Claim.ID)
	case ReportReady:
		return fmt.Sprintf("tell ready %d", e.Claim.ID)
	case CancelQueued:
		return fmt.Sprintf("withdraw %v cause %d: %s", e.Attempt, e.Cause, e.Reason)
	case AcceptClaim:
		if e.Claim.IsWaiting() {
			return fmt.Sprintf("answer %d on session %d: waits, predicted %v", e.Claim.ID, e.Session,
				e.Claim.PredictedWait)
		}
		return fmt.Sprintf("answer %d on session %d", e.Claim.ID, e.Session)
	case RejectClaim:
		return fmt.Sprintf("refuse grant %d: %s", e.Grant.ID, e.Reason)
	case StartAttempt:
		return fmt.Sprintf("start %v on %d", e.Attempt, e.Claim.ID)
	case RejectActivation:
		return fmt.Sprintf("decline %v, no claim %v: %s", e.Attempt, e.NoClaim, e.Reason)
	case VacateAttempt:
		return fmt.Sprintf("vacate %v cause %d fast %v: %s", e.Attempt, e.Cause, e.Fast, e.Reason)
	case ReportStarted:
		return fmt.Sprintf("tell started %v", e.Attempt)
	case ReportExited:
		return fmt.Sprintf("tell exited %v", e.Attempt)
	case ReportLost:
		return fmt.Sprintf("tell lost %d: %s", e.Claim.ID, e.Reason)
	case RenewLease:
		return fmt.Sprintf("renew %d to %v", e.Claim.ID, e.Claim.Lease)
	case DiscardAttempt:
		return fmt.Sprintf("forget %v", e.Attempt)
	case ThrottleCPU:
		return fmt.Sprintf("squeeze %d to %v", e.Claim.ID, e.Claim.CPUCap)
	case SetMemorySlack:
		return fmt.Sprintf("slack %d to %v", e.Claim.ID, e.Claim.MemorySlack)
	case RemoveClaim:
		return fmt.Sprintf("dismiss %d", e.Claim.ID)
	case CloseSession:
		return fmt.Sprintf("hang session %d", e.Session)
	}
	return fmt.Sprintf("%T", e)
}

type stepArguments map[string]string

func words(args []string) stepArguments {
	w := make(stepArguments)
	for _, a := range args {
		name, value, _ := strings.Cut(a, "=")
		w[name] = value
	}
	return w
}

func (w stepArguments) number(name string, usual int) int {
	if n, err := strconv.Atoi(w[name]); err == nil {
		return n
	}
	return usual
}

func (w stepArguments) text(name, usual string) string {
	if v, ok := w[name]; ok {
		return v
	}
	return usual
}

func (w stepArguments) attempt() roost.AttemptID {
	job := roost.JobID{Seq: uint64(w.number("job", 1)), Host: w.text("schedd", "s1")}
	return roost.AttemptID{Task: job.Task(0), Attempt: roost.AttemptNumber(w.number("attempt", 1))}
}

func (s *scriptRunner) runStep(command string, w stepArguments) error {
	c, schedd, session, claim := s.core, w.text("schedd", "s1"), uint64(w.number("session", 1)),
		ClaimID(w.number("claim", 1))
	heard := func(ok bool) error {
		if !ok {
			return fmt.Errorf("not heard")
		}
		return nil
	}
	switch command {
	case "connect":
		return c.Connected(s.now, session, schedd, int64(w.number("started", 1)), uint64(w.number("incarnation", 1)))
	case "disconnect":
		c.Disconnected(s.now, session, schedd)
	case "ask":
		_, err := c.DecideClaim(s.now, s.requestClaim(w, schedd, session))
		return err
	case "made":
		c.ClaimCreated(claim)
	case "unmade":
		c.ClaimFailed(s.now, claim, "no starter")
	case "activate":
		return c.Activate(s.now, session, schedd, claim, w.attempt(), AttemptInfo{
			Walltime: time.Duration(w.number("walltime", 0)) * time.Second,
			Expected: time.Duration(w.number("expected", 0)) * time.Second, NotRestartable: w.number("once", 0) > 0,
		})
	case "started":
		c.Started(s.now, claim, w.attempt())
	case "ended":
		c.Ended(s.now, claim, w.attempt())
	case "acknowledge":
		return heard(c.Acknowledged(session, schedd, w.attempt()))
	case "vacate":
		return heard(c.RequestVacate(session, schedd, w.attempt(), Removed, w.text("fast", "") != "", "removed"))
	case "release":
		return heard(c.Release(session, schedd, claim))
	case "renew":
		_, ok := c.RenewClaims(s.now, session, schedd, LeaseRenewal{ // sent just now, unless it says otherwise
			LastHeard: uint64(w.number("heard", 1<<30)), Since: time.Duration(w.number("since", 1<<30)) * time.Second,
			Lease: time.Duration(w.number("seconds", 0)) * time.Second,
		})
		return heard(ok)
	case "queue":
		s.core = newTestTable(s.t, QueueOptions{
			RunLimit: w.number("limit", 0), Length: w.number("length", 0), Auto: w.text("auto", "") != "",
			MaxWait: time.Duration(w.number("wait", 0)) * time.Second,
		})
	case "adopt":
		state := map[string]ClaimState{"idle": Idle, "busy": Busy, "exited": Exited}[w.text("state", "idle")]
		r := s.requestClaim(w, schedd, session)
		a := Claim{ID: claim, Schedd: schedd, Owner: r.Owner, Class: r.Class, CanQueue: r.CanQueue,
			Resources: r.Resources, State: state, Lease: s.now + r.Lease, LeasePeriod: r.Lease}
		if state != Idle {
			a.Attempt = w.attempt()
		}
		if w.text("held", "") != "" {
			a.Placement = gpu.Placement{Class: r.Class,
				Parts: []gpu.UnitPart{{CPU: r.Resources.CPU, Memory: r.Resources.Memory}}}
		}
		c.ids.next = max(c.ids.next, claim+1)
		return c.Adopt(s.now, a)
	case "lend":
		s.core.SetAvailable(strings.ReplaceAll(w["not"], "_", " "))
	case "bound":
		s.core.SetOwnerLimits(s.now, roost.MilliCPU(w.number("cpu", 0)), roost.Bytes(w.number("mib", 0))*roost.MiB,
			"its owner lends less")
	case "handback":
		s.core.ReleaseIdle("its owner is back")
	case "expel":
		if !s.core.EndClaim(ClaimID(w.number("claim", 0)), w.number("fast", 0) == 1, "its owner wants it back") {
			return roost.NotFound
		}
	case "drain":
		c.Drain("shutting down")
	case "wait":
		s.now += time.Duration(w.number("seconds", 0)) * time.Second
	case "reclaim":
		return s.reclaim(w)
	case "sample":
		s.sample(w)
	case "state", "claims":
	default:
		s.t.Fatalf("no such step: %s", command)
	}
	return nil
}

func (s *scriptRunner) requestClaim(w stepArguments, schedd string, session uint64) ClaimRequest {
	ad := classad.New()
	ad.SetString(roost.AttrOwner, w.text("owner", "ann"))
	if err := ad.SetExpr(roost.AttrRequirements, w.text("requirements", "true")); err != nil {
		s.t.Fatal(err)
	}
	r := ClaimRequest{
		Session: session, Schedd: schedd,
		Grant: roost.GrantID{Epoch: uint64(w.number("epoch", 1)), ID: uint64(w.number("grant", 1))},
		Owner: w.text("owner", "ann"),
		Ad:    ad, Lease: time.Duration(w.number("lease", 60)) * time.Second, TokenValid: w.text("forged", "") == "",
		Resources: roost.Resources{CPU: roost.MilliCPU(w.number("cpu", 1000)),
			Memory: roost.Bytes(w.number("mib", 1024)) * roost.MiB},
	}
	r.Info.Group, r.Info.Limits, r.Info.Alone = w.text("group", ""), w.text("limits", ""), w.text("alone", "") != ""
	r.Info.Band, _ = roost.ParsePriorityBand(w.text("band", "batch"))
	for _, id := range strings.FieldsFunc(w.text("victims", ""), func(c rune) bool { return c == ',' }) {
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		r.Victims.Claims = append(r.Victims.Claims, ClaimID(n))
	}
	r.Victims.Job, r.Victims.Reason = w.text("for", ""), strings.ReplaceAll(w.text("why", ""), "_", " ")
	r.CanQueue, r.GrantDeadline = w.text("wait", "") != "", time.Duration(w.number("by", 0))*time.Second
	r.Class, _ = gpu.ParseClass(w.text("class", ""))
	if w.text("account", "") != "" {
		r.AccountError = fmt.Errorf("%w: no such user here", roost.PermissionDenied)
	}
	return r
}

// TestRandom simulates schedds and effects at random and checks the claim table after
// each step. The table must be consistent and agree with what was done: an attempt that
// was started ends before its claim or its resources go.
func TestRandom(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runRandomSteps(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

// queues are those that the random play has.
var queues = []QueueOptions{{}, {Length: 3}, {Auto: true}, {MaxWait: time.Hour, RunLimit: 2}}

// unitLayouts are machines: one unit, two, two cards that borrow, two cards with cores.
func unitLayouts() [][]gpu.ResourceUnit {
	device := func(i int) []gpu.Device {
		return []gpu.Device{{UUID: fmt.Sprint("GPU-", i), Index: i, NUMANode: i, Memory: 8 * roost.GiB,
			Health: gpu.HealthyDevice()}}
	}
	half := gpu.ResourceUnit{CPU: 2000, Memory: 4 * roost.GiB}
	a, b := half, half
	a.Name, b.Name = "cpu0", "cpu1"
	one, two := half, half
	one.Name, one.Devices, two.Name, two.Devices = "gpu0", device(0), "gpu1", device(1)
	all := gpu.ResourceUnit{Name: "shared", CPU: 4000, Memory: 8 * roost.GiB, NUMA: -1}
	return [][]gpu.ResourceUnit{{all}, {a, b},
		{all, {Name: "gpu0", Devices: device(0)}, {Name: "gpu1", Devices: device(1)}}, {one, two}}
}

func randomResources(r *rand.Rand, c *ClaimTable) roost.Resources {
	q := roost.Resources{CPU: roost.MilliCPU(r.IntN(2500)), Memory: roost.GiB}
	if len(c.free.Devices()) > 0 && r.IntN(2) == 0 {
		if q.GPUs = 1 + r.IntN(2); r.IntN(2) == 0 {
			q.GPUMemory = roost.Bytes(1+r.IntN(5)) * roost.GiB
		}
	}
	return q
}

// randomVictims are some claims, one of which may not exist.
func randomVictims(r *rand.Rand, c *ClaimTable) (e PreemptionReason) {
	for range r.IntN(4) {
		e.Claims = append(e.Claims, ClaimID(1+r.Uint64N(uint64(c.ids.next)+1)))
	}
	return e
}

// testWorld is what the effects have done.
type testWorld struct {
	making map[ClaimID]bool
	runs   map[ClaimID]roost.AttemptID
	seen   map[roost.AttemptID]bool
}

func runRandomSteps(t *testing.T, r *rand.Rand) {
	c := newTestTable(t, queues[r.IntN(len(queues))])
	opt := c.opt
	opt.Units = unitLayouts()[r.IntN(len(unitLayouts()))]
	opt.Reclaim = roost.ReclaimLevel(r.IntN(4))
	c = New(opt)
	w := &testWorld{making: map[ClaimID]bool{}, runs: map[ClaimID]roost.AttemptID{}, seen: map[roost.AttemptID]bool{}}
	var now roost.BootTime
	sessions := map[string]uint64{}
	next, incarnation := uint64(1), uint64(1)
	for range 400 {
		schedd := fmt.Sprintf("s%d", r.IntN(2))
		session := sessions[schedd]
		if r.IntN(10) == 0 && session > 1 {
			session-- // an older one, or another's
		}
		claim := ClaimID(r.Uint64N(uint64(c.ids.next) + 1))
		job := roost.JobID{Seq: 1 + r.Uint64N(4), Host: schedd}
		a := roost.AttemptID{Task: job.Task(0), Attempt: roost.AttemptNumber(1 + r.IntN(40))}
		if on, ok := c.Claim(claim); ok && r.IntN(2) == 0 {
			a = on.Attempt
		}
		switch r.IntN(15) {
		case 0:
			if r.IntN(3) == 0 || session == 0 {
				if c.Connected(now, next, schedd, 1, incarnation-r.Uint64N(2)) == nil {
					sessions[schedd] = next
				}
				next++
				incarnation++
			}
		case 1, 2:
			c.DecideClaim(now, ClaimRequest{
				Session: session, Schedd: schedd, Grant: roost.GrantID{Epoch: 1 + r.Uint64N(2), ID: r.Uint64N(1000)},
				TokenValid: r.IntN(9) > 0,
				CanQueue:   r.IntN(2) == 0,
				Victims:    randomVictims(r, c),
				Class:      gpu.AppClass(r.IntN(5) / 4),
				Info:       ClaimInfo{Band: roost.PriorityBand(r.IntN(4))},
				Resources:  randomResources(r, c), Lease: time.Duration(r.IntN(50)) * time.Second,
			})
		case 3, 4:
			if w.making[claim] {
				delete(w.making, claim)
				c.ClaimCreated(claim)
			}
		case 5:
			if r.IntN(4) == 0 && claim < c.ids.next {
				delete(w.making, claim)
				delete(w.runs, claim) // the starter's death is the end of all that it ran
				c.ClaimFailed(now, claim, "died")
			}
		case 6, 7:
			c.Activate(now, session, schedd, claim, a, AttemptInfo{})
		case 8:
			c.Started(now, claim, a)
		case 9:
			if w.runs[claim] == a {
				delete(w.runs, claim)
				c.Ended(now, claim, a)
			}
		case 10:
			c.Acknowledged(session, schedd, a)
		case 11:
			switch r.IntN(4) {
			case 0:
				c.RequestVacate(session, schedd, a, Removed, r.IntN(2) == 0, "removed")
			case 1:
				c.Release(session, schedd, claim)
			case 2:
				c.RenewClaims(now, session, schedd, LeaseRenewal{LastHeard: r.Uint64N(20),
					Since: time.Duration(r.IntN(50)) * time.Second, Lease: time.Duration(r.IntN(50)) * time.Second})
			case 3:
				c.Disconnected(now, session, schedd)
			}
		case 12:
			if r.IntN(4) == 0 {
				var there []gpu.Device
				for _, d := range c.free.Devices() {
					if d.Health = gpu.HealthyDevice(); r.IntN(4) == 0 {
						d.Health = gpu.Unhealthy("hot")
					}
					if r.IntN(5) > 0 {
						there = append(there, d.Device)
					}
				}
				if unknown := c.SetDevices(now, there); unknown != nil {
					t.Fatalf("%v are unknown", unknown)
				}
			}
			now += time.Duration(r.IntN(20)) * time.Second
			if r.IntN(2) == 0 {
				now += time.Duration(r.IntN(400)) * time.Second
			}
		case 13:
			addRandomSamples(r, c, now)
		case 14:
			if r.IntN(4) == 0 {
				c.SetOwnerLimits(now, roost.MilliCPU(r.IntN(10)*500), roost.Bytes(r.IntN(5))*2*roost.GiB,
					"its owner lends less")
			}
		}
		c.invariants().Check()
		effects, _ := c.Todo(now)
		c.invariants().Check()
		c.invariants().checkOvercommit()
		c.invariants().checkOwnerLimits()
		checkNoIdleFit(t, c)
		w.performEffects(t, c, effects)
	}
}

// performEffects does the effects, and complains about those that must not be.
func (w *testWorld) performEffects(t *testing.T, c *ClaimTable, effects []Effect) {
	t.Helper()
	for _, e := range effects {
		switch e := e.(type) {
		case CreateClaim:
			w.making[e.Claim.ID] = true
		case StartAttempt:
			if _, busy := w.runs[e.Claim.ID]; busy || w.seen[e.Attempt] {
				t.Fatalf("%v is started on %v", e.Attempt, e.Claim)
			}
			w.runs[e.Claim.ID] = e.Attempt
			w.seen[e.Attempt] = true
		case DiscardAttempt:
			if w.runs[e.Claim.ID] == e.Attempt {
				t.Fatalf("%v is forgotten while it runs", e.Attempt)
			}
		case RemoveClaim:
			if a, busy := w.runs[e.Claim.ID]; busy {
				t.Fatalf("%v is dismissed while %v runs", e.Claim, a)
			}
		}
	}
	for id, a := range w.runs {
		if claim, ok := c.Claim(id); !ok || !claim.hasPlacement || claim.Attempt != a {
			t.Fatalf("%v runs on claim %d, which the books have otherwise", a, id)
		}
	}
	if c.nextDeadline < 0 {
		t.Fatalf("wake %v", c.nextDeadline)
	}
}
