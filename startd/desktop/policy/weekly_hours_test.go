package policy

import (
	"errors"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

func TestHours(t *testing.T) {
	for _, tt := range []struct {
		hours string
		at    string // 2026-11-22 is a Sunday
		want  bool
	}{
		{"Mon-Fri 08:00-18:00", "2026-11-23 08:00", true},
		{"Mon-Fri 08:00-18:00", "2026-11-23 17:59", true},
		{"Mon-Fri 08:00-18:00", "2026-11-23 18:00", false},
		{"Mon-Fri 08:00-18:00", "2026-11-22 12:00", false},
		{"monday-friday 8:00-18:00", "2026-11-27 12:00", true},
		{"Fri-Mon 08:00-18:00", "2026-11-22 12:00", true},
		{"Fri-Mon 08:00-18:00", "2026-11-24 12:00", false},
		{"Sat,Sun 00:00-24:00", "2026-11-22 23:59", true},
		{"Sat,Sun 00:00-24:00", "2026-11-23 00:00", false},
		{"22:00-06:00", "2026-11-25 23:00", true},
		{"22:00-06:00", "2026-11-25 05:59", true},
		{"22:00-06:00", "2026-11-25 06:00", false},
		{"Fri 22:00-06:00", "2026-11-28 03:00", true},
		{"Fri 22:00-06:00", "2026-11-27 03:00", false},
		{"Sat 22:00-06:00", "2026-11-22 03:00", true},
	} {
		h, err := ParseHours(tt.hours)
		if err != nil {
			t.Errorf("%s: %v", tt.hours, err)
			continue
		}
		at, err := time.Parse("2006-01-02 15:04", tt.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Contains(at); got != tt.want {
			t.Errorf("%s at %s: got %v", tt.hours, tt.at, got)
		}
	}
	for _, text := range []string{"", "Mon", "Mon-Fri", "08:00", "08:00-", "8-18", "Mo-Fr 08:00-18:00", "24:00-25:00",
		"24:00-06:00", "08:00-08:00", "08:60-09:00", "Mon Tue 08:00-09:00", "-08:00-09:00"} {
		if h, err := ParseHours(text); !errors.Is(err, roost.Invalid) {
			t.Errorf("%q: got %+v, %v", text, h, err)
		}
	}
}
