package document

import (
	"strings"
	"testing"
	"time"
)

// TestScheduleOf checks what is shown of the schedule of a job.
func TestScheduleOf(t *testing.T) {
	ad := `[ JobName = "nightly"; Cmd = "/bin/true"; Schedule = [ Cron = "30 2 * * *"; Zone = "Europe/Berlin" ] ]`
	s := ScheduleOf(ad, "ann", time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC))
	if s == nil {
		t.Fatal("none")
	}
	want := "2026-03-28T02:30:00+01:00 2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00 " +
		"2026-03-31T02:30:00+02:00 2026-04-01T02:30:00+02:00"
	if got := strings.Join(s.Next, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := s.Text(); got != "30 2 * * * in Europe/Berlin; overlap skip, missed last within 1h0m0s" {
		t.Errorf("got %q", got)
	}
	for _, none := range []string{"", "[", "[ Cmd = \"a\" ]", `[ Schedule = [ Cron = "0 0 30 2 *" ] ]`,
		`[ Schedule = 3 ]`} {
		if s := ScheduleOf(none, "ann", time.Now()); s != nil {
			t.Errorf("%s: %+v", none, s)
		}
	}
}
