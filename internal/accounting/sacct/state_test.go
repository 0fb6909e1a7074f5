package sacct

import (
	"maps"
	"testing"
)

func TestParseStates(t *testing.T) {
	for _, c := range []struct {
		text         string
		want         StateSet
		isLive, ends bool
	}{
		{"", nil, false, false},
		{"r,PD", StateSet{"RUNNING": true, "PENDING": true}, true, false},
		{"completed, oom", StateSet{"COMPLETED": true, "OUT_OF_MEMORY": true}, false, true},
		{"SUSPENDED,F", StateSet{"SUSPENDED": true, "FAILED": true}, true, true},
	} {
		got, err := ParseStates(c.text)
		if err != nil || !maps.Equal(got, c.want) || got.HasLive() != c.isLive || got.HasEnd() != c.ends {
			t.Errorf("%q: got %v, %v", c.text, got, err)
		}
	}
	for _, text := range []string{"x", "R,", "RUNNINGS"} {
		if got, err := ParseStates(text); err == nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}
