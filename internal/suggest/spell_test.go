package suggest

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"memory", "memory", 0}, {"memroy", "memory", 1}, {"mem", "memory", 3},
		{"gpus", "cpus", 1},
		{"gup", "gpus", 2}, {"kitten", "sitting", 3}, {strings.Repeat("a", 65), "a", 64},
	} {
		if got, back := Distance(c.a, c.b), Distance(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("Distance(%q, %q) is %d and %d, want %d", c.a, c.b, got, back, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"chem", "physics", "bio", "x"}
	for word, want := range map[string]string{"chme": "chem", "Physcs": "physics", "math": "", "y": "",
		"boi": "bio", "": ""} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) is %q, want %q", word, got, want)
		}
	}
}
