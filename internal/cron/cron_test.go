package cron

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/adhocore/gronx"
)

func mustParse(t *testing.T, text, zone string) *Schedule {
	t.Helper()
	loc, err := LoadZone(zone)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(text, loc, "ann/nightly")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

// instants lists the next instants after a time, as the clock of the zone shows them.
func instants(s *Schedule, after time.Time, n int) string {
	var list []string
	for range n {
		after = s.Next(after)
		list = append(list, after.Format("Jan-2 15:04 -07"))
	}
	return strings.Join(list, ", ")
}

// TestNext checks the instants of schedules, above all where clocks change. In Berlin
// they go forward on 29 March 2026 from 2:00 to 3:00, and back on 25 October from 3:00 to
// 2:00.
func TestNext(t *testing.T) {
	for _, c := range []struct{ text, zone, after, want string }{
		{"30 3 * * *", "Europe/Berlin", "2026-01-01T03:30:00Z", "Jan-2 03:30 +01, Jan-3 03:30 +01"},
		{"30 3 * * *", "Europe/Berlin", "2026-01-01T02:29:59Z", "Jan-1 03:30 +01, Jan-2 03:30 +01"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "Mar-29 03:00 +02, Mar-30 02:30 +02"},
		{"*/20 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "Mar-29 03:00 +02, Mar-30 02:00 +02"},
		{"0,30 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "Mar-29 03:00 +02, Mar-29 03:30 +02"},
		{"30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "Mar-29 01:30 +01, Mar-29 03:30 +02"},
		{"30 */2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "Mar-29 04:30 +02, Mar-29 06:30 +02"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "Oct-25 02:30 +02, Oct-26 02:30 +01"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "Oct-26 02:30 +01, Oct-27 02:30 +01"},
		{"30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z",
			"Oct-25 02:30 +02, Oct-25 02:30 +01, Oct-25 03:30 +01"},
		{"0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", "Dec-31 00:00 +14, Dec-30 12:00 +14"},
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "Oct-4 02:30 +11, Oct-5 02:15 +11"},
		{"0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "Feb-29 00:00 +00, Feb-29 00:00 +00"},
		{"0 0 31 * *", "UTC", "2026-01-31T00:00:00Z", "Mar-31 00:00 +00, May-31 00:00 +00"},
		{"0 0 13 * fri", "UTC", "2026-02-01T00:00:00Z", "Feb-6 00:00 +00, Feb-13 00:00 +00, Feb-20 00:00 +00"},
		{"0 0 */2 * fri", "UTC", "2026-02-01T00:00:00Z", "Feb-13 00:00 +00, Feb-27 00:00 +00"},
		{"0 9 * JAN-mar Mon,7", "UTC", "2026-03-25T00:00:00Z", "Mar-29 09:00 +00, Mar-30 09:00 +00, Jan-3 09:00 +00"},
		{"0 9 * * fri-sun", "UTC", "2026-03-25T00:00:00Z", "Mar-27 09:00 +00, Mar-28 09:00 +00, Mar-29 09:00 +00"},
		{"5/20 0 1 1 *", "UTC", "2026-12-31T23:59:59Z", "Jan-1 00:05 +00, Jan-1 00:25 +00, Jan-1 00:45 +00"},
		{"@weekly", "UTC", "2026-03-25T00:00:00Z", "Mar-29 00:00 +00"},
		{"@hourly", "UTC", "2026-03-25T00:00:00Z", "Mar-25 01:00 +00"},
		{" @Daily ", "", "2026-03-25T00:00:00Z", "Mar-26 00:00 +00"},
	} {
		after, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		if got := instants(mustParse(t, c.text, c.zone), after, strings.Count(c.want, ",")+1); got != c.want {
			t.Errorf("%s in %s after %s:\n got %s\nwant %s", c.text, c.zone, c.after, got, c.want)
		}
	}
}

// TestHashedValues checks that H is one value in its range, the same each time, and that
// many jobs are spread.
func TestHashedValues(t *testing.T) {
	minutes := map[int]int{}
	for i := range 600 {
		seed := fmt.Sprintf("ann/job%d", i)
		next := func(text string) time.Time {
			s, err := Parse(text, time.UTC, seed)
			if err != nil {
				t.Fatal(err)
			}
			return s.Next(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
		}
		first := next("H 3 * * *")
		if first.Hour() != 3 || !first.Equal(next("H 3 * * *")) {
			t.Fatalf("%s: %v, then %v", seed, first, next("H 3 * * *"))
		}
		minutes[first.Minute()]++
		if m := next("H(10-19) 3 * * *").Minute(); m < 10 || m > 19 {
			t.Fatalf("H(10-19) is %d", m)
		}
		s, err := Parse("H/20 * * * *", time.UTC, seed)
		if err != nil {
			t.Fatal(err)
		}
		one := s.Next(first)
		if two := s.Next(one); two.Sub(one) != 20*time.Minute {
			t.Fatalf("H/20: %v, then %v", one, two)
		}
		if d := next("0 0 H * *").Day(); d > 28 {
			t.Fatalf("a day of each month: %d", d)
		}
	}
	if len(minutes) < 55 {
		t.Errorf("600 jobs are at %d minutes", len(minutes))
	}
}

// TestSyntaxErrors checks what is said of bad expressions, and where.
func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct{ text, at, cause string }{
		{"0 0 3 * * *", "*", "has 5 fields, and this one has 6"},
		{"0 3 * *", "0 3 * *", "has 5 fields, and this one has 4"},
		{"", "", "has 5 fields, and this one has 0"},
		{"*/0 * * * *", "0", `"0" is no step`},
		{"*/61 * * * *", "61", `"61" is no step`},
		{"*/ * * * *", "", `"" is no step`},
		{"0 0 30 2 *", "30 2", "no such day ever comes"},
		{"0 0 31 4,6,9,11 *", "31 4,6,9,11", "no such day ever comes"},
		{"60 * * * *", "60", `"60" is no minute`},
		{"0 24 * * *", "24", `"24" is no hour`},
		{"0 0 0 * *", "0", `"0" is no day of the month`},
		{"0 0 * 13 *", "13", `"13" is no month`},
		{"0 0 * * 8", "8", `"8" is no day of the week`},
		{"0 0 * * fry", "fry", `"fry" is no day of the week`},
		{"0 9-5 * * *", "9-5", "ends before it begins"},
		{"0 9- * * *", "", `"" is no hour`},
		{"0 1,,2 * * *", "", "a value of the hour is missing"},
		{"0 -1 * * *", "-1", `"-1" is no hour`},
		{"0 +1 * * *", "+1", `"+1" is no hour`},
		{"0 H(1 * * *", "H(1", `"H(1" is no hour`},
		{"@reboot", "@reboot", `no short form "@reboot"`},
		{strings.Repeat("1,", 300) + " * * * *", "", "and 256 is the most"},
	} {
		_, err := Parse(c.text, time.UTC, "")
		var e *SyntaxError
		if !errors.As(err, &e) || !strings.Contains(e.Cause, c.cause) || e.Cure == "" {
			t.Errorf("%q: %v, want %s", c.text, err, c.cause)
			continue
		}
		if got := c.text[e.Start:e.End]; c.at != "" && got != c.at {
			t.Errorf("%q: the place is %q, want %q", c.text, got, c.at)
		}
	}
	for _, zone := range []string{"Europe/Atlantis", "Local", "../../etc/passwd", "CET/"} {
		if _, err := LoadZone(zone); err == nil {
			t.Errorf("zone %q is taken", zone)
		}
	}
}

// TestOracle compares random expressions with another implementation, in UTC.
func TestOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	part := func(first, last int) string {
		switch a, b := first+r.IntN(last-first+1), first+r.IntN(last-first+1); r.IntN(5) {
		case 0, 1:
			return "*"
		case 2:
			return fmt.Sprint(a)
		case 3:
			return fmt.Sprintf("%d-%d", min(a, b), max(a, b))
		default:
			return fmt.Sprintf("%d,%d", min(a, b), max(a, b))
		}
	}
	compared := 0
	for range 2000 {
		text := strings.Join([]string{part(0, 59), part(0, 23), part(1, 28), part(1, 12), part(0, 6)}, " ")
		if r.IntN(4) == 0 {
			text = fmt.Sprintf("*/%d%s", 2+r.IntN(20), text[strings.IndexByte(text, ' '):])
		}
		s, err := Parse(text, time.UTC, "")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		after := time.Date(2020+r.IntN(10), 1, 1+r.IntN(365), r.IntN(24), r.IntN(60), r.IntN(60), 0, time.UTC)
		want, err := gronx.NextTickAfter(text, after, false)
		if err != nil {
			continue // it looks less far ahead
		}
		compared++
		if got := s.Next(after); !got.Equal(want) {
			t.Errorf("%s after %v: got %v, want %v", text, after, got, want)
		}
	}
	if compared < 1900 {
		t.Errorf("only %d were compared", compared)
	}
}

// TestNextNaive compares schedules in zones with a search minute by minute.
func TestNextNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		zone := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}[r.IntN(3)]
		text := fmt.Sprintf("%d */%d * * *", r.IntN(60), 1+r.IntN(6))
		s := mustParse(t, text, zone)
		after := time.Date(2026, time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60), 1, 0, time.UTC)
		want := after.Truncate(time.Minute).Add(time.Minute).In(s.zone)
		for s.minutes&(1<<want.Minute()) == 0 || s.hours&(1<<want.Hour()) == 0 {
			want = want.Add(time.Minute)
		}
		if got := s.Next(after); !got.Equal(want) {
			t.Errorf("%s in %s after %v: got %v, want %v", text, zone, after, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("H(0-29)/10 */2 1,15 jan-jun mon-fri")
	f.Add("@daily")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text, time.UTC, "seed")
		if err != nil {
			var e *SyntaxError
			if !errors.As(err, &e) || e.Start < 0 || e.End > len(text) || e.Start > e.End {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		after := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if next := s.Next(after); !next.After(after) {
			t.Fatalf("%q: %v", text, next)
		}
	})
}
