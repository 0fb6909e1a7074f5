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

// TestPredictions checks the first instants since 1970, in minutes, of schedules as
// crontabs have them. They were found by another program, minute by minute.
func TestPredictions(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int64
	}{
		{"0 20 * * 1", []int64{6960, 17040, 27120, 37200, 47280, 57360, 67440, 77520, 87600, 97680}},
		{"11    *   *   *   *", []int64{11, 71, 131, 191, 251, 311, 371, 431, 491, 551}},
		{"04 02 * * *", []int64{124, 1564, 3004, 4444, 5884, 7324, 8764, 10204, 11644, 13084}},
		{"1-56/5 * * * *", []int64{1, 6, 11, 16, 21, 26, 31, 36, 41, 46}},
		{"05 02,08,12 * * *", []int64{125, 485, 725, 1565, 1925, 2165, 3005, 3365, 3605, 4445}},
		{"3,43 * * * *", []int64{3, 43, 63, 103, 123, 163, 183, 223, 243, 283}},
		{"0 17-23 * * 1-5", []int64{1020, 1080, 1140, 1200, 1260, 1320, 1380, 2460, 2520, 2580}},
		{"50 */4 * * *", []int64{50, 290, 530, 770, 1010, 1250, 1490, 1730, 1970, 2210}},
		{"* * * * *", []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{"55 */1 * * *", []int64{55, 115, 175, 235, 295, 355, 415, 475, 535, 595}},
		{"*/30 * * * *", []int64{30, 60, 90, 120, 150, 180, 210, 240, 270, 300}},
		{"0 0 12 * *", []int64{15840, 60480, 100800, 145440, 188640, 233280, 276480, 321120, 365760, 408960}},
		{"17 5,8,13,16,19 * * *", []int64{317, 497, 797, 977, 1157, 1757, 1937, 2237, 2417, 2597}},
		{"0 9 4,18 * *", []int64{4860, 25020, 49500, 69660, 89820, 109980, 134460, 154620, 177660, 197820}},
		{"0 18 * * 4", []int64{1080, 11160, 21240, 31320, 41400, 51480, 61560, 71640, 81720, 91800}},
		{"*/15 9-17/4 1 */3 *", []int64{540, 555, 570, 585, 780, 795, 810, 825, 1020, 1035}},
		{"0 0 1 1 *", []int64{525600, 1051200, 1578240, 2103840, 2629440, 3155040, 3682080, 4207680, 4733280, 5258880}},
		{"0 12 * * 7", []int64{5040, 15120, 25200, 35280, 45360, 55440, 65520, 75600, 85680, 95760}},
	} {
		s, at := mustParse(t, c.text, "UTC"), time.Unix(0, 0)
		for i, want := range c.want {
			if at = s.Next(at); at.Unix() != want*60 {
				t.Errorf("%s: instant %d is %v, want %v", c.text, i, at.UTC(), time.Unix(want*60, 0).UTC())
			}
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
