package slot

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// TestAdOfManyClaims checks that a machine gives as many claims as its ad can name. It
// says so when there is no room for another, and gives one again when a claim has gone.
func TestAdOfManyClaims(t *testing.T) {
	for _, tt := range []struct {
		name        string
		words       int // bytes of what is said of each claim
		least, most int // claims
	}{{"usual", 8, 1500, 3000}, {"long", 2000, 100, 500}} {
		t.Run(tt.name, func(t *testing.T) {
			c, now := fullMachine(t, tt.words)
			text := adText(c, now)
			if n := c.Len(); n < tt.least || n > tt.most || len(text) > roost.MaxDaemonAdBytes {
				t.Errorf("the machine has %d claims, and an ad of %d bytes", n, len(text))
			}
			if full := strings.Contains(text, "Requirements = false"); full != (tt.words < minClaimText) {
				t.Errorf("its ad takes nobody: %v", full)
			}
			for id := range ClaimID(20) {
				claim, _ := c.Claim(firstLargeClaim + id)
				c.Ended(now, claim.ID, claim.Attempt)
				c.Acknowledged(1, "s1", claim.Attempt)
				c.Release(1, "s1", claim.ID)
			}
			c.Todo(now)
			c.invariants().Check()
			if text := adText(c, now); strings.Contains(text, "Requirements = false") {
				t.Error("claims have gone, and its ad takes nobody")
			}
			if _, err := c.DecideClaim(now, newClaimRequest(1<<40, tt.words)); err != nil {
				t.Errorf("claims have gone: got %v", err)
			}
		})
	}
}

// TestWordsOfAClaim: what a schedd says of a claim is not so long that one claim fills
// the ad.
func TestWordsOfAClaim(t *testing.T) {
	c := newTestTable(t, QueueOptions{})
	if err := c.Connected(0, 1, "s1", 1, 1); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*ClaimRequest, string){
		func(r *ClaimRequest, s string) { r.Owner = s },
		func(r *ClaimRequest, s string) { r.Info.Group = s },
		func(r *ClaimRequest, s string) { r.Info.Limits = s },
		func(r *ClaimRequest, s string) { r.Info.Queue = s },
	} {
		r := newClaimRequest(1, 8)
		change(&r, strings.Repeat("x", 1<<20))
		if _, err := c.DecideClaim(0, r); !errors.Is(err, roost.Invalid) ||
			!strings.Contains(fmt.Sprint(err), "is the most") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := c.DecideClaim(0, newClaimRequest(1, 8)); err != nil {
		t.Errorf("the ordinary one: got %v", err)
	}
}

// firstLargeClaim is the id of its first claim.
const firstLargeClaim = 1 << 30

// fullMachine is a large machine that runs as many small tasks as it takes.
func fullMachine(t *testing.T, words int) (*ClaimTable, roost.BootTime) {
	t.Helper()
	ad, err := classad.Parse(`[Name = "n1"; Start = true; Requirements = Start; Rank = 0]`)
	if err != nil {
		t.Fatal(err)
	}
	c := New(TableOptions{Units: []gpu.ResourceUnit{{Name: "shared", NUMA: -1, CPU: 1 << 30, Memory: 1 << 50}}, Ad: ad,
		FirstID: firstLargeClaim, ExitRetention: time.Hour})
	now := roost.BootTime(time.Hour)
	if err := c.Connected(now, 1, "s1", 1, 1); err != nil {
		t.Fatal(err)
	}
	for n := uint64(1); n < 10_000; n++ {
		claim, err := c.DecideClaim(now, newClaimRequest(n, words))
		if errors.Is(err, roost.Exhausted) && strings.Contains(err.Error(), "ad has no room") {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		c.ClaimCreated(claim.ID)
		a := roost.AttemptID{Task: roost.JobID{Seq: 1<<40 + n, Host: "s1"}.Task(99_999), Attempt: 1}
		if err := c.Activate(now, 1, "s1", claim.ID,
			a, AttemptInfo{Walltime: time.Hour, Expected: time.Minute, NotRestartable: true}); err != nil {
			t.Fatal(err)
		}
		c.Started(now, claim.ID, a)
		c.Todo(now)
	}
	c.invariants().Check()
	return c, now
}

func newClaimRequest(grant uint64, words int) ClaimRequest {
	return ClaimRequest{
		Session: 1, Schedd: "s1", Grant: roost.GrantID{Epoch: 1, ID: grant}, Owner: strings.Repeat("o", words),
		TokenValid: true,
		Lease:      1000 * time.Hour,
		Info:       ClaimInfo{Group: strings.Repeat("g", words), Band: roost.BatchBand},
		Resources:  roost.Resources{CPU: 50, Memory: 100*roost.MiB + 1},
	}
}

// adText is the machine's ad as it is published a while later.
func adText(c *ClaimTable, now roost.BootTime) string {
	ad := c.Ad()
	c.DescribeClaims(ad, ClockReading{now + roost.BootTime(time.Hour), time.Unix(2_000_000_000, 0)},
		func(*Claim) CheckpointInfo {
			return CheckpointInfo{Possible: true, Last: time.Unix(1_999_999_999, 0)}
		})
	return ad.String()
}
