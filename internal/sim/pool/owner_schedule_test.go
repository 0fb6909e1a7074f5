package pool

import (
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/sim/eventloop"
	"github.com/roost-batch/roost/startd/desktop/policy"
)

// drawnVisits returns the visits of some days, from a Friday at 8 o'clock.
func drawnVisits(t *testing.T, v OwnerSchedule, days int, hours ...string) (all [][2]time.Duration) {
	t.Helper()
	for _, text := range hours {
		h, err := policy.ParseHours(text)
		if err != nil {
			t.Fatal(err)
		}
		v.Hours = append(v.Hours, h)
	}
	h := &ownerSchedule{OwnerSchedule: v, rand: eventloop.NewRand(1, ownerStream)}
	h.drawVisit()
	calendar := func(at time.Duration) time.Time { return time.Unix(wallStart, 0).UTC().Add(at) }
	for now := time.Duration(0); ; {
		from, to, ok := h.nextVisit(now, calendar)
		if !ok || from > time.Duration(days)*wholeDay {
			return all
		}
		if from < now || to <= from {
			t.Fatalf("after %v from %v to %v", now, from, to)
		}
		all, now = append(all, [2]time.Duration{from, to}), to
	}
}

// TestOwnerSchedule checks that owners come as often as configured, and only within their
// hours.
func TestOwnerSchedule(t *testing.T) {
	const h = time.Hour
	work := drawnVisits(t, OwnerSchedule{}, 7, "Mon-Fri 08:00-12:00", "Mon-Fri 13:00-18:00", "Sat 22:00-02:00")
	want := [][2]time.Duration{{0, 4 * h}, {5 * h, 10 * h}, {38 * h, 42 * h}, {72 * h, 76 * h}, {77 * h, 82 * h}}
	for i := range want {
		if i >= len(work) || work[i] != want[i] {
			t.Fatalf("the hours are %v, want first %v", work, want)
		}
	}
	both, count := drawnVisits(t, OwnerSchedule{MeanAway: h, MeanPresent: h / 2}, 200, "08:00-18:00"),
		func(all [][2]time.Duration) (n int, there time.Duration) {
			for _, v := range all {
				there += v[1] - v[0]
			}
			return len(all), there
		}
	for _, v := range both {
		if at := (v[0] + 8*h) % wholeDay; at < 8*h || at+v[1]-v[0] > 18*h {
			t.Fatalf("he is there from %v to %v", v[0], v[1])
		}
	}
	if n, there := count(both); n < 1200 || n > 1600 || there < 600*h || there > 720*h {
		t.Errorf("within the hours of 200 days he comes %d times, for %v", n, there)
	}
	if n, there := count(drawnVisits(t, OwnerSchedule{MeanAway: h, MeanPresent: h / 2}, 200)); n < 3000 || n > 3400 ||
		there < 1500*h || there > 1700*h {
		t.Errorf("in 200 days he comes %d times, for %v", n, there)
	}
	if all := drawnVisits(t, OwnerSchedule{}, 3, "00:00-24:00"); len(all) != 4 || all[1][0] != wholeDay {
		t.Errorf("who is always there comes as %v", all)
	}
}
