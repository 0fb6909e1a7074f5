package roost

import (
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
	}{
		{"90s", 90 * time.Second}, {"1h30m", 90 * time.Minute}, {"2d", 48 * time.Hour}, {"1w", 168 * time.Hour},
		{"500ms", 500 * time.Millisecond}, {"1.5h", 90 * time.Minute},
		{"01:30:00", 90 * time.Minute}, {"0:5:0", 5 * time.Minute}, {"1:0:5:0.5", 24*time.Hour + 5*time.Minute +
			500*time.Millisecond}, {"5:0", 5 * time.Minute}, {"100:00:00", 100 * time.Hour},
		{"3600", time.Hour}, {"0", 0}, {" 10s ", 10 * time.Second},
	} {
		if got, err := ParseDuration(c.text); err != nil || got != c.want {
			t.Errorf("%q: %v, %v; want %v", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{"soon", "-5s", "-5", "5x", "1:2:3:4:5", "1:-2", "1:", ":", "h", "1h-", "nan", "inf",
		"1e300", "9223372036.854775807", "1:nan", "99999999w"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	f.Add("1h30m")
	f.Add("1:2:3.5")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := ParseDuration(text); err == nil && d < 0 {
			t.Fatalf("%q: %v", text, d)
		}
	})
}
