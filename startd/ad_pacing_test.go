package startd

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// TestAdPacing checks that changes right after an ad that took long are advertised
// together. Meanwhile a claim is said to be in the next ad.
func TestAdPacing(t *testing.T) {
	l := newAdLoop(t, 3)
	l.performEffects()
	first := l.sequence
	if isAdStale(l) || first != 1 || nextAdSequence(l) != 1 {
		t.Fatalf("the first ad was not made at once: sequence %d, stale %t", first, isAdStale(l))
	}
	for id := range l.health {
		l.forgetHealth(id)
		l.pacing = adPacing{madeAt: boottime.Now(), took: time.Hour}
		wake := l.performEffects()
		if l.sequence != first || nextAdSequence(l) != first+1 {
			t.Fatalf("sequence %d, and %d is to show the change, want %d and %d", l.sequence, nextAdSequence(l), first,
				first+1)
		}
		if wait := wake - l.pacing.madeAt; wait != maxAdPause {
			t.Fatalf("the change is advertised after %v, want %v", wait, maxAdPause)
		}
	}
	l.pacing.madeAt -= maxAdPause
	l.performEffects()
	if l.sequence != first+1 || isAdStale(l) {
		t.Errorf("sequence %d after the pause, want %d", l.sequence, first+1)
	}
}

// TestPrintedEndpoints checks that an ad of printed parts is the one that is made anew,
// whatever has changed.
func TestPrintedEndpoints(t *testing.T) {
	l := newAdLoop(t, 4)
	describe := func() string {
		ad := classad.New()
		l.table.DescribeClaims(ad, slot.ClockReading{Wall: time.Unix(1_800_000_000, 0)}, l.host.meters.CheckpointInfo)
		l.describeEndpoints(ad)
		return ad.String()
	}
	before := describe()
	for i, change := range []func(id slot.ClaimID){
		func(slot.ClaimID) {},
		func(id slot.ClaimID) {
			h := l.health[id]
			h.Health = &wire.TaskHealth{Attempt: h.Health.GetAttempt(), State: wire.HealthState_HEALTH_STATE_LEAVING}
			l.health[id] = h
		},
		func(id slot.ClaimID) {
			h := l.health[id]
			h.Right = &wire.NameRight{ExpiresS: 1_900_000_000, Signature: []byte("s"), Certificate: []byte("c")}
			l.health[id] = h
		},
		func(id slot.ClaimID) {
			c, _ := l.table.Claim(id)
			l.table.RequestVacate(1, "pool", c.Attempt, slot.Removed, true, "")
			l.table.Ended(boottime.Now(), id, c.Attempt)
		},
		func(id slot.ClaimID) {
			c, _ := l.table.Claim(id)
			next := roost.AttemptID{Task: c.Attempt.Task, Attempt: 2}
			l.table.Acknowledged(1, "pool", c.Attempt)
			info := slot.AttemptInfo{Walltime: time.Hour}
			if err := l.table.Activate(boottime.Now(), 1, "pool", id, next, info); err != nil {
				t.Fatal(err)
			}
			l.table.Started(boottime.Now(), id, next)
		},
	} {
		change(2)
		got := describe()
		clear(l.printedEndpoints)
		if want := describe(); got != want {
			t.Errorf("change %d: the parts give\n%s\nand anew it is\n%s", i, got, want)
		}
		if i > 0 && got == before {
			t.Errorf("change %d is not in the ad", i)
		}
		before = got
	}
	if parsed, err := classad.Parse(before); err != nil || !strings.HasPrefix(parsed.String(), before[:40]) {
		t.Errorf("the ad is read as %v: %v", parsed, err)
	}
}
