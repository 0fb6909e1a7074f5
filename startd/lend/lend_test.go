package lend

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
	"github.com/roost-batch/roost/internal/story"
	"github.com/roost-batch/roost/startd/owner"
	"github.com/roost-batch/roost/startd/slot"
)

// desk is a machine of four cores with the policy "desktop", whose hands say what they are told. It is lent after 1 minute without anybody; tasks go on after
// 30 seconds, and leave after 2 minutes.
type desk struct {
	t       *testing.T
	books   *slot.Core
	lender  *Lender
	now     slot.Instant
	wake    slot.Instant
	input   slot.Instant
	busy    string
	hands   map[slot.ClaimID]bool
	out     strings.Builder
	session uint64
	grants  uint64
}

// TestStories runs the stories of testdata. Commands, at the instant that follows "at", or when the last step ended:
//
//	start (again: what ran is adopted), key (somebody comes and stays), gone (he leaves), signs [froze] (as they are), lost
//	claim, activate CLAIM ATTEMPT, started CLAIM, ended CLAIM, vacate CLAIM, pass DURATION, sync CLAIM (there is a hand of it, whether or not there is the claim)
func TestStories(t *testing.T) {
	story.Run(t, "testdata/*.txt", func(t *testing.T) func(story.Step) string {
		d := &desk{t: t, now: time.Hour, input: 1, hands: map[slot.ClaimID]bool{}}
		d.start(nil)
		return d.step
	})
}

func (d *desk) start(left []*slot.Claim) {
	policy, err := owner.Make(owner.Settings{Preset: "desktop", StartAfter: time.Minute, ResumeAfter: 30 * time.Second, LeaveAfter: 2 * time.Minute, Vacate: time.Minute})
	if err != nil {
		d.t.Fatal(err)
	}
	ad, err := classad.Parse("[Requirements = true; Rank = 0]")
	if err != nil {
		d.t.Fatal(err)
	}
	d.books = slot.New(slot.Options{
		Units: []gpu.Unit{{Name: "shared", NUMA: -1, CPU: 4000, Memory: 8 * roost.GiB}}, Ad: ad, FirstID: 1 + slot.ClaimID(10*len(left)), KeepExits: time.Hour,
	})
	for _, c := range left {
		if err := d.books.Adopted(d.now, *c); err != nil {
			d.t.Fatal(err)
		}
	}
	d.lender = New("desk1", owner.New(owner.Options{Policy: policy, Name: "desk1"}), d.books, d)
	d.session++
	if err := d.books.Connected(d.now, d.session, "host1", 1, 1); err != nil {
		d.t.Fatal(err)
	}
	d.act()
}

func (d *desk) signs(froze bool) {
	d.lender.Signed(d.now, time.Unix(int64(d.now/time.Second), 0).UTC(), owner.Signs{Input: d.input, Busy: d.busy}, froze)
}

func (d *desk) step(s story.Step) string {
	d.out.Reset()
	args := slices.Clone(s.Args)
	if i := slices.Index(args, "at"); i >= 0 {
		d.now = time.Hour + d.duration(args[i+1])
		args = slices.Delete(args, i, i+2)
	}
	switch s.Command {
	case "start":
		var left []*slot.Claim
		for _, c := range d.books.All() {
			own := *c
			left = append(left, &slot.Claim{
				ID: own.ID, Grant: own.Grant, Schedd: own.Schedd, Owner: own.Owner, About: own.About, Resources: own.Resources, State: own.State, Attempt: own.Attempt,
				Running: own.Running, Began: own.Began, Lease: d.now + own.Period, Period: own.Period, Placement: own.Placement,
			})
		}
		d.start(left)
	case "key":
		d.input, d.busy = d.now, "somebody is at it"
		d.signs(false)
	case "gone":
		d.input, d.busy = d.now, ""
		d.signs(false)
	case "signs":
		d.signs(slices.Contains(args, "froze"))
	case "lost":
		d.lender.GuardLost(d.now)
	case "pass":
		for end := d.now + d.duration(args[0]); d.now < end; {
			d.now = min(max(d.wake, d.now+time.Second), end)
			d.act()
		}
	case "sync":
		d.hands[d.claim(args[0])] = true
	default:
		d.ofClaim(s.Command, args)
	}
	d.act()
	return d.out.String()
}

func (d *desk) ofClaim(command string, args []string) {
	if command == "claim" {
		d.grants++
		d.books.Decide(d.now, slot.ClaimRequest{
			Session: d.session, Schedd: "host1", Grant: slot.GrantID{Epoch: 1, ID: d.grants}, Owner: "ann", Resources: roost.Resources{CPU: 1000, Memory: roost.GiB},
			Lease: 10 * time.Minute, Capable: true, Env: &classad.Env{},
		})
		return
	}
	id := d.claim(args[0])
	c, _ := d.books.Claim(id)
	switch command {
	case "activate":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			d.t.Fatal(err)
		}
		a := roost.AttemptID{Task: roost.JobID{Seq: uint64(id), Host: "host1"}.Task(0), Attempt: roost.Attempt(n)}
		if err := d.books.Activated(d.now, d.session, "host1", id, a, slot.Terms{}); err != nil {
			fmt.Fprintf(&d.out, "error: %v\n", err)
		}
	case "started":
		d.books.Started(d.now, id, c.Attempt)
	case "ended":
		d.books.Ended(d.now, id, c.Attempt)
	case "vacate":
		d.books.VacateAsked(d.session, "host1", c.Attempt, slot.Removed, false, "its user said so")
	default:
		d.t.Fatalf("no command %s", command)
	}
}

// act does what the loop of a startd does.
func (d *desk) act() {
	for again := true; again; again = d.lender.Stale() {
		did, wake := d.lender.Attend(d.now)
		if did.News {
			fmt.Fprintf(&d.out, "%v: not lent: %q\n", d.now-time.Hour, d.lender.NotLent())
		}
		effects, _ := d.books.Todo(d.now)
		d.wake = wake
		for _, e := range effects {
			d.lender.Performed(e)
			switch e := e.(type) {
			case slot.Make:
				d.hands[e.Claim.ID] = true
				d.books.Made(e.Claim.ID)
			case slot.Dismiss:
				delete(d.hands, e.Claim.ID)
				fmt.Fprintf(&d.out, "%v: claim %d is gone\n", d.now-time.Hour, e.Claim.ID)
			case slot.Vacate:
				fmt.Fprintf(&d.out, "%v: vacate %d fast=%v: %s\n", d.now-time.Hour, e.Claim.ID, e.Fast, e.Reason)
			case slot.Refuse:
				fmt.Fprintf(&d.out, "%v: refused: %s\n", d.now-time.Hour, e.Reason)
			}
		}
		d.books.Check()
	}
}

// The hands only say what they do.

func (d *desk) All() []slot.ClaimID                      { return slices.Sorted(maps.Keys(d.hands)) }
func (d *desk) Present(id slot.ClaimID) bool             { return d.hands[id] }
func (d *desk) Hold(id slot.ClaimID, why string)         { d.say("hold %d %q", id, why) }
func (d *desk) GoOn(id slot.ClaimID)                     { d.say("let %d go on", id) }
func (d *desk) Suspended(c *slot.Claim, why string)      { d.say("tell host1 of %d: %q", c.ID, why) }
func (d *desk) Shrink(id slot.ClaimID)                   { d.say("shrink %d", id) }
func (d *desk) Kill(id slot.ClaimID)                     { d.say("kill %d", id) }
func (d *desk) Measured(*slot.Claim) (roost.Bytes, bool) { return roost.GiB, false }
func (d *desk) Note(owner.Order)                         {}

func (d *desk) say(format string, args ...any) {
	fmt.Fprintf(&d.out, "%v: "+format+"\n", append([]any{d.now - time.Hour}, args...)...)
}

func (d *desk) claim(text string) slot.ClaimID {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		d.t.Fatal(err)
	}
	return slot.ClaimID(n)
}

func (d *desk) duration(text string) time.Duration {
	length, err := time.ParseDuration(text)
	if err != nil {
		d.t.Fatal(err)
	}
	return length
}
