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

// TestAdOfManyClaims: a machine gives as many claims as its ad can name, says so when there is no room for another, and takes somebody again when one has gone.
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
			if full := strings.Contains(text, "Requirements = false"); full != (tt.words < usualClaim) {
				t.Errorf("its ad takes nobody: %v", full)
			}
			for id := range ClaimID(20) {
				claim, _ := c.Claim(firstLarge + id)
				c.Ended(now, claim.ID, claim.Attempt)
				c.Acknowledged(1, "s1", claim.Attempt)
				c.Released(1, "s1", claim.ID)
			}
			c.Todo(now)
			c.check()
			if text := adText(c, now); strings.Contains(text, "Requirements = false") {
				t.Error("claims have gone, and its ad takes nobody")
			}
			if _, err := c.Decide(now, wishOf(1<<40, tt.words)); err != nil {
				t.Errorf("claims have gone: got %v", err)
			}
		})
	}
}

// TestWordsOfAClaim: what a schedd says of a claim is not so long that one claim fills the ad.
func TestWordsOfAClaim(t *testing.T) {
	c := machine(t, QueueOptions{})
	if err := c.Connected(0, 1, "s1", 1, 1); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*ClaimRequest, string){
		func(r *ClaimRequest, s string) { r.Owner = s },
		func(r *ClaimRequest, s string) { r.About.Group = s },
		func(r *ClaimRequest, s string) { r.About.Limits = s },
		func(r *ClaimRequest, s string) { r.About.Queue = s },
	} {
		r := wishOf(1, 8)
		change(&r, strings.Repeat("x", 1<<20))
		if _, err := c.Decide(0, r); !errors.Is(err, roost.Invalid) || !strings.Contains(fmt.Sprint(err), "is the most") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := c.Decide(0, wishOf(1, 8)); err != nil {
		t.Errorf("the ordinary one: got %v", err)
	}
}

// firstLarge is the id of its first claim.
const firstLarge = 1 << 30

// fullMachine is a large machine that runs as many small tasks as it takes.
func fullMachine(t *testing.T, words int) (*Core, Instant) {
	t.Helper()
	ad, err := classad.Parse(`[Name = "n1"; Start = true; Requirements = Start; Rank = 0]`)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{Units: []gpu.Unit{{Name: "shared", NUMA: -1, CPU: 1 << 30, Memory: 1 << 50}}, Ad: ad, FirstID: firstLarge, KeepExits: time.Hour})
	now := Instant(time.Hour)
	if err := c.Connected(now, 1, "s1", 1, 1); err != nil {
		t.Fatal(err)
	}
	for n := uint64(1); n < 10_000; n++ {
		claim, err := c.Decide(now, wishOf(n, words))
		if errors.Is(err, roost.Exhausted) && strings.Contains(err.Error(), "ad has no room") {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Made(claim.ID)
		a := roost.AttemptID{Task: roost.JobID{Seq: 1<<40 + n, Host: "s1"}.Task(99_999), Attempt: 1}
		if err := c.Activated(now, 1, "s1", claim.ID, a, Terms{Walltime: time.Hour, Expected: time.Minute, Once: true}); err != nil {
			t.Fatal(err)
		}
		c.Started(now, claim.ID, a)
		c.Todo(now)
	}
	c.check()
	return c, now
}

func wishOf(grant uint64, words int) ClaimRequest {
	return ClaimRequest{
		Session: 1, Schedd: "s1", Grant: GrantID{1, grant}, Owner: strings.Repeat("o", words), Capable: true, Lease: 1000 * time.Hour,
		About:     About{Group: strings.Repeat("g", words), Band: roost.Batch},
		Resources: roost.Resources{CPU: 50, Memory: 100*roost.MiB + 1},
	}
}

// adText is the machine's ad as it is published a while later.
func adText(c *Core, now Instant) string {
	ad := c.Ad()
	c.DescribeClaims(ad, Clock{now + Instant(time.Hour), time.Unix(2_000_000_000, 0)}, func(*Claim) Saved { return Saved{Can: true, Last: time.Unix(1_999_999_999, 0)} })
	return ad.String()
}
