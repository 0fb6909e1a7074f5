package adclient

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// TestMerge feeds a merger of two sources with steps and checks the result. A step is a
// source and its message: "begin", "synced", "NAME/START/SEQUENCE" or
// "NAME/START/SEQUENCE/NODE", "-NAME"; or "wait", which lets the confirmTimeout pass.
func TestMerge(t *testing.T) {
	tests := []struct {
		name, steps, want string
	}{
		{"an ad of two sources is told once", "0:begin 1:begin 0:a/1/1 0:synced 1:a/1/1 1:synced", "a/1/1 synced"},
		{"the newer one holds", "0:a/1/2 1:a/1/1 1:a/1/3 0:a/2/1 1:a/1/9", "a/1/2 a/1/3 a/2/1"},
		{"gone only when nobody has it", "0:a/1/1 1:a/1/1 0:-a 1:-a", "a/1/1 -a"},
		{"a source that comes back with the ad", "0:begin 0:a/1/1 0:synced 0:begin 0:a/1/1 0:synced wait",
			"a/1/1 synced"},
		{"a source that comes back without it", "0:begin 0:a/1/1 0:b/1/1 0:synced 0:begin 0:b/1/1 0:synced wait",
			"a/1/1 b/1/1 synced -a"},
		{"a source that comes back and learns it again", "0:begin 0:a/1/1 0:synced 0:begin 0:synced 0:a/1/1 wait",
			"a/1/1 synced"},
		{"the other source still has it", "0:begin 1:begin 0:a/1/1 1:a/1/1 1:synced 0:begin 0:synced wait",
			"a/1/1 synced"},
		{"a source that does not come back is believed", "0:begin 0:a/1/1 0:synced 0:begin wait", "a/1/1 synced"},
		{"a node gets its name back, however new another says to be", "0:a/9/9/b 0:a/1/1/a 1:a/99/99/b", "a/9/9 a/1/1"},
		{"of a name that is no node's the first counts", "0:s.a/1/1/a 1:s.a/9/9/b 0:s.a/1/2/a", "s.a/1/1 s.a/1/2"},
		{"until nobody has it", "0:s.a/1/1/a 1:s.a/9/9/b 0:-s.a 1:s.a/9/10/b", "s.a/1/1 s.a/9/10"},
		{"a collector takes its word back", "0:a/1/1/a 0:a/9/9/b 0:a/1/2/a", "a/1/1 a/9/9 a/1/2"},
	}
	for _, test := range tests {
		m, now, synced := newMerger(2), time.Unix(0, 0), false
		var got []string
		for _, step := range strings.Fields(test.steps) {
			if step == "wait" {
				now = now.Add(confirmTimeout)
			} else {
				m.apply(now, parseEvents(step))
			}
			m.expireUnconfirmed(now)
			changes, tell := m.takeChanges()
			for _, c := range changes {
				if c.Removed {
					got = append(got, "-"+c.Name)
				} else {
					got = append(got, fmt.Sprintf("%s/%d/%d", c.Name, c.Started, c.Sequence))
				}
			}
			if tell && m.synced && !synced {
				synced = true
				got = append(got, "synced")
			}
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, text, test.want)
		}
	}
}

func parseEvents(step string) adEvent {
	n := adEvent{source: int(step[0] - '0')}
	switch what := step[2:]; {
	case what == "begin":
	case what == "synced":
		n.delta = &wire.AdDelta{Synced: true}
	case what[0] == '-':
		n.delta = &wire.AdDelta{Name: what[1:], Removed: true}
	default:
		n.delta = &wire.AdDelta{}
		fmt.Sscanf(strings.ReplaceAll(what, "/", " "), "%s %d %d %s", &n.delta.Name, &n.delta.Started,
			&n.delta.Sequence, &n.delta.Node)
	}
	return n
}
