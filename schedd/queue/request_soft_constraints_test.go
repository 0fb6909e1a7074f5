package queue

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// TestSoftConstraints checks that soft constraints are in the ads of requests and tell
// requests apart. Jobs that are to be spread make a request each.
func TestSoftConstraints(t *testing.T) {
	d := newTestQueue(t)
	d.submit(2, `Cmd = "x"`)
	d.submit(1, `Cmd = "y"; ConcurrencyLimits = "matlab:2"; Packages = {"gcc"}`)
	d.submit(1, `Cmd = "z"; ConcurrencyLimits = "matlab:2"; Packages = {"gcc"}`)
	d.submit(1, `Cmd = "z"; Prefer = {"TARGET.Speed > 1"}`)
	d.submit(3, `Cmd = "z"; Spread = "Rack"`)
	d.submit(1, `Cmd = "z"; Spread = "Rack"`)
	var ads []string
	for _, id := range d.queue.Requests() {
		r, _ := d.queue.Request(id)
		ads = append(ads, r.Ad)
	}
	if len(ads) != 5 {
		t.Fatalf("got %d requests, want 5:\n%s", len(ads), strings.Join(ads, "\n"))
	}
	for i, wants := range [][]string{
		{}, {`ConcurrencyLimits = "matlab:2"`, `Packages = { "gcc" }`}, {`Prefer = { "TARGET.Speed > 1" }`},
		{`Spread = "Rack"`, `JobId = "5.h"`}, {`Spread = "Rack"`, `JobId = "6.h"`},
	} {
		for _, want := range wants {
			if !strings.Contains(ads[i], want) {
				t.Errorf("request %d: %s lacks %s", i, ads[i], want)
			}
		}
	}
	for _, src := range []string{
		`ConcurrencyLimits = "a b"`, `ConcurrencyLimits = 1`, `Packages = "gcc"`, `Prefer = {"TARGET.Speed >"}`,
		`Prefer = {1}`, `Spread = Rack`,
	} {
		_, _, _, err := d.queue.SubmitJobs(d.now, alice, "bad"+src,
			[]jobad.SubmitSpec{{Ad: parseTestAd(d, `Cmd = "x"; `+src), Count: 1}}, SubmitLimits{})
		if name, _, _ := strings.Cut(src, " "); !errors.Is(err, roost.Invalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", src, err)
		}
	}
}
