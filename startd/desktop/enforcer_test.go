package desktop

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/script"
	"github.com/roost-batch/roost/startd/desktop/policy"
	"github.com/roost-batch/roost/startd/slot"
)

// testMachine is a machine of four cores with the policy "desktop" and a ClaimController
// that logs its calls. It is available after 1 minute without input; tasks resume after
// 30 seconds, and are vacated after 2 minutes.
type testMachine struct {
	t          *testing.T
	claimTable *slot.ClaimTable
	enforcer   *PolicyEnforcer
	now        roost.BootTime
	wake       roost.BootTime
	input      roost.BootTime
	busy       string
	runners    map[slot.ClaimID]bool
	log        strings.Builder
	session    uint64
	grants     uint64
}

// TestStories runs the scripts in testdata. Each command runs at the time given after
// "at", or when the last step ended. Commands:
//
//	start                     a repeated one adopts the claims
//	key, gone                 the owner begins to use the machine, or leaves
//	signs [froze]             the guard reports without a change
//	lost                      the guard is lost
//	claim, activate CLAIM ATTEMPT, started CLAIM, ended CLAIM, vacate CLAIM
//	pass DURATION
//	sync CLAIM                the claim has a runner, whether or not it exists
func TestStories(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func(script.ScriptCommand) string {
		d := &testMachine{t: t, now: time.Hour, input: 1, runners: map[slot.ClaimID]bool{}}
		d.start(nil)
		return d.step
	})
}

func (d *testMachine) start(left []*slot.Claim) {
	rules, err := policy.NewPolicy(policy.PolicySettings{Preset: "desktop", StartAfter: time.Minute,
		ResumeAfter: 30 * time.Second, LeaveAfter: 2 * time.Minute, Vacate: time.Minute})
	if err != nil {
		d.t.Fatal(err)
	}
	ad, err := classad.Parse("[Requirements = true; Rank = 0]")
	if err != nil {
		d.t.Fatal(err)
	}
	d.claimTable = slot.New(slot.TableOptions{
		Units: []gpu.ResourceUnit{{Name: "shared", NUMA: -1, CPU: 4000, Memory: 8 * roost.GiB}}, Ad: ad,
		FirstID: 1 + slot.ClaimID(10*len(left)), ExitRetention: time.Hour,
	})
	for _, c := range left {
		if err := d.claimTable.Adopt(d.now, *c); err != nil {
			d.t.Fatal(err)
		}
	}
	d.enforcer = New("desk1", policy.New(policy.PolicyOptions{Policy: rules, Name: "desk1"}), d.claimTable, d)
	d.session++
	if err := d.claimTable.Connected(d.now, d.session, "host1", 1, 1); err != nil {
		d.t.Fatal(err)
	}
	d.performEffects()
}

func (d *testMachine) observe(froze bool) {
	d.enforcer.Observe(d.now, time.Unix(int64(d.now/time.Second), 0).UTC(),
		policy.GuardObservations{Input: d.input, OwnerUseReason: d.busy}, froze)
}

func (d *testMachine) step(s script.ScriptCommand) string {
	d.log.Reset()
	args := slices.Clone(s.Args)
	if i := slices.Index(args, "at"); i >= 0 {
		d.now = time.Hour + d.duration(args[i+1])
		args = slices.Delete(args, i, i+2)
	}
	switch s.Command {
	case "start":
		var left []*slot.Claim
		for _, c := range d.claimTable.Claims() {
			own := *c
			left = append(left, &slot.Claim{
				ID: own.ID, Grant: own.Grant, Schedd: own.Schedd, Owner: own.Owner, Info: own.Info,
				Resources: own.Resources, State: own.State, Attempt: own.Attempt,
				Running: own.Running, RunningSince: own.RunningSince, Lease: d.now + own.LeasePeriod,
				LeasePeriod: own.LeasePeriod, Placement: own.Placement,
			})
		}
		d.start(left)
	case "key":
		d.input, d.busy = d.now, "somebody is at it"
		d.observe(false)
	case "gone":
		d.input, d.busy = d.now, ""
		d.observe(false)
	case "signs":
		d.observe(slices.Contains(args, "froze"))
	case "lost":
		d.enforcer.GuardLost(d.now)
	case "pass":
		for end := d.now + d.duration(args[0]); d.now < end; {
			d.now = min(max(d.wake, d.now+time.Second), end)
			d.performEffects()
		}
	case "sync":
		d.runners[d.claim(args[0])] = true
	default:
		d.runClaimStep(s.Command, args)
	}
	d.performEffects()
	return d.log.String()
}

func (d *testMachine) runClaimStep(command string, args []string) {
	if command == "claim" {
		d.grants++
		d.claimTable.DecideClaim(d.now, slot.ClaimRequest{
			Session: d.session, Schedd: "host1", Grant: roost.GrantID{Epoch: 1, ID: d.grants}, Owner: "ann",
			Resources: roost.Resources{CPU: 1000, Memory: roost.GiB},
			Lease:     10 * time.Minute, TokenValid: true, Env: &classad.EvalEnv{},
		})
		return
	}
	id := d.claim(args[0])
	c, _ := d.claimTable.Claim(id)
	switch command {
	case "activate":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			d.t.Fatal(err)
		}
		a := roost.AttemptID{Task: roost.JobID{Seq: uint64(id), Host: "host1"}.Task(0), Attempt: roost.AttemptNumber(n)}
		if err := d.claimTable.Activate(d.now, d.session, "host1", id, a, slot.AttemptInfo{}); err != nil {
			fmt.Fprintf(&d.log, "error: %v\n", err)
		}
	case "started":
		d.claimTable.Started(d.now, id, c.Attempt)
	case "ended":
		d.claimTable.Ended(d.now, id, c.Attempt)
	case "vacate":
		d.claimTable.RequestVacate(d.session, "host1", c.Attempt, slot.Removed, false, "its user said so")
	default:
		d.t.Fatalf("no command %s", command)
	}
}

// performEffects does what a startd's loop does.
func (d *testMachine) performEffects() {
	for again := true; again; again = d.enforcer.ClaimsChanged() {
		did, wake := d.enforcer.Apply(d.now)
		if did.AvailabilityChanged {
			fmt.Fprintf(&d.log, "%v: not lent: %q\n", d.now-time.Hour, d.enforcer.UnavailableReason())
		}
		effects, _ := d.claimTable.Todo(d.now)
		d.wake = wake
		for _, e := range effects {
			d.enforcer.OnEffect(e)
			switch e := e.(type) {
			case slot.CreateClaim:
				d.runners[e.Claim.ID] = true
				d.claimTable.ClaimCreated(e.Claim.ID)
			case slot.RemoveClaim:
				delete(d.runners, e.Claim.ID)
				fmt.Fprintf(&d.log, "%v: claim %d is gone\n", d.now-time.Hour, e.Claim.ID)
			case slot.VacateAttempt:
				fmt.Fprintf(&d.log, "%v: vacate %d fast=%v: %s\n", d.now-time.Hour, e.Claim.ID, e.Fast, e.Reason)
			case slot.RejectClaim:
				fmt.Fprintf(&d.log, "%v: refused: %s\n", d.now-time.Hour, e.Reason)
			}
		}
		d.claimTable.Check()
	}
}

// The ClaimController only logs its calls.

func (d *testMachine) RunnerIDs() []slot.ClaimID                { return slices.Sorted(maps.Keys(d.runners)) }
func (d *testMachine) HasRunner(id slot.ClaimID) bool           { return d.runners[id] }
func (d *testMachine) SetSuspended(id slot.ClaimID, why string) { d.record("hold %d %q", id, why) }
func (d *testMachine) Resume(id slot.ClaimID)                   { d.record("let %d go on", id) }
func (d *testMachine) ReportSuspended(c *slot.Claim, why string) {
	d.record("tell host1 of %d: %q", c.ID, why)
}
func (d *testMachine) TrimMemory(id slot.ClaimID)                { d.record("shrink %d", id) }
func (d *testMachine) Kill(id slot.ClaimID)                      { d.record("kill %d", id) }
func (d *testMachine) TaskUsage(*slot.Claim) (roost.Bytes, bool) { return roost.GiB, false }
func (d *testMachine) LogEffect(policy.Effect)                   {}

func (d *testMachine) record(format string, args ...any) {
	fmt.Fprintf(&d.log, "%v: "+format+"\n", append([]any{d.now - time.Hour}, args...)...)
}

func (d *testMachine) claim(text string) slot.ClaimID {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		d.t.Fatal(err)
	}
	return slot.ClaimID(n)
}

func (d *testMachine) duration(text string) time.Duration {
	length, err := time.ParseDuration(text)
	if err != nil {
		d.t.Fatal(err)
	}
	return length
}
