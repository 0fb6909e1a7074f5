package spell

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"memory", "memory", 0}, {"memroy", "memory", 1}, {"mem", "memory", 3}, {"gpus", "cpus", 1},
		{"gup", "gpus", 2}, {"kitten", "sitting", 3}, {strings.Repeat("a", 65), "a", 64},
	} {
		if got, back := Distance(c.a, c.b), Distance(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("Distance(%q, %q) is %d and %d, want %d", c.a, c.b, got, back, c.want)
		}
	}
}
