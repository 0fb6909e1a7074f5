package roost

import "testing"

func TestParseBytes(t *testing.T) {
	for _, c := range []struct {
		text string
		want Bytes
	}{
		{"4GiB", 4 * GiB}, {"4G", 4 * GiB}, {"4gb", 4 * GiB}, {"13MB", 13 * MiB}, {"48828K", 48828 * KiB},
		{"1.5G", 3 * GiB / 2}, {"1024", 1024}, {"10 GB", 10 * GiB},
		{"2w", 16}, {"1kw", 8 * KiB}, {"7b", 7}, {"0", 0}, {"0.3", 1}, {"1P", PiB},
	} {
		if got, err := ParseBytes(c.text); err != nil || got != c.want {
			t.Errorf("%q: %d, %v; want %d", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{"", "G", "-4G", "4 gigs", "4iB", "1.2.3M", "9999P", "inf", "nan", "0x10", "4GG"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q: %d, want an error", text, got)
		}
	}
}

func TestTimes(t *testing.T) {
	free := Resources{CPU: 4000, Memory: 8 * GiB, Disk: 100 * GiB, GPUs: 1}
	for _, c := range []struct {
		take Resources
		want int
	}{
		{Resources{CPU: 1000, Memory: GiB}, 4}, {Resources{CPU: 500, Memory: 3 * GiB}, 2}, {Resources{GPUs: 1}, 1},
		{Resources{CPU: 5000}, 0}, {Resources{}, 0},
	} {
		if got := c.take.TimesIn(free); got != c.want {
			t.Errorf("%v fits %d times, want %d", c.take, got, c.want)
		}
		if c.take.FitsIn(free) != (c.want > 0) && c.take != (Resources{}) {
			t.Errorf("%v: Fits and Times disagree", c.take)
		}
	}
}
