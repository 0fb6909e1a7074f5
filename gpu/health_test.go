package gpu

import "testing"

func TestEventHealth(t *testing.T) {
	tests := []struct {
		xid  int
		want Fault
		ok   bool
	}{
		{13, Application, true}, {31, Application, true}, {43, Application, true}, {45, Application, true},
		{63, Notice, true}, {94, Contained, true}, {9999, Unknown, true},
		{48, Hardware, false}, {64, Hardware, false}, {74, Hardware, false}, {79, Hardware, false}, {95, Hardware, false}, {119, Hardware, false},
	}
	for _, test := range tests {
		e := Event{UUID: "GPU-1", XID: test.xid}
		if got, text := e.Fault(); got != test.want || text == "" {
			t.Errorf("%v: fault %v %q, want %v and a text", e, got, text, test.want)
		}
		if got := e.Health(Healthy()); got.OK != test.ok || got.OK != (got.Why == "") {
			t.Errorf("%v: health %+v, want OK %v, and a reason if not", e, got, test.ok)
		}
	}
	first := Event{XID: 79}.Health(Healthy())
	if got := (Event{XID: 119}).Health(first); got != first {
		t.Errorf("a second error made the reason %+v, want %+v", got, first)
	}
}

func TestUsageOf(t *testing.T) {
	u := Usage{Processes: []Process{{PID: 3, Memory: 100, Busy: 0.5}, {PID: 5, Memory: 300, Busy: Unmeasured}, {PID: 9, Memory: Unmeasured, Busy: 0.25}}}
	tests := []struct {
		pids   []int
		memory int64
		busy   float64
		pid    int
	}{
		{nil, 0, 0, 0}, {[]int{4, 8}, 0, 0, 0}, {[]int{3, 5}, 400, 0.5, 5}, {[]int{1, 3, 9}, 100, 0.75, 3}, {[]int{9}, 0, 0.25, 9},
	}
	for _, test := range tests {
		memory, busy, largest := u.Of(test.pids)
		if int64(memory) != test.memory || busy != test.busy || largest.PID != test.pid {
			t.Errorf("of %v: %d bytes, busy %g, largest %d, want %d, %g, %d", test.pids, memory, busy, largest.PID, test.memory, test.busy, test.pid)
		}
	}
}
