package gpu

import "testing"

func TestEventHealth(t *testing.T) {
	tests := []struct {
		xid  int
		want XIDClass
		ok   bool
	}{
		{13, ApplicationXID, true}, {31, ApplicationXID, true}, {43, ApplicationXID, true}, {45, ApplicationXID, true},
		{63, NoticeXID, true}, {94, ContainedXID, true}, {9999, UnknownXID, true},
		{48, HardwareXID, false}, {64, HardwareXID, false}, {74, HardwareXID, false}, {79, HardwareXID, false},
		{95, HardwareXID, false}, {119, HardwareXID, false},
	}
	for _, test := range tests {
		e := XIDEvent{UUID: "GPU-1", XID: test.xid}
		if got, text := e.Class(); got != test.want || text == "" {
			t.Errorf("%v: fault %v %q, want %v and a text", e, got, text, test.want)
		}
		if got := e.Health(HealthyDevice()); got.OK != test.ok || got.OK != (got.Reason == "") {
			t.Errorf("%v: health %+v, want OK %v, and a reason if not", e, got, test.ok)
		}
	}
	first := XIDEvent{XID: 79}.Health(HealthyDevice())
	if got := (XIDEvent{XID: 119}).Health(first); got != first {
		t.Errorf("a second error made the reason %+v, want %+v", got, first)
	}
}

func TestUsageOf(t *testing.T) {
	u := DeviceUsage{Processes: []DeviceProcess{{PID: 3, Memory: 100, Busy: 0.5},
		{PID: 5, Memory: 300, Busy: NotMeasured}, {PID: 9, Memory: NotMeasured, Busy: 0.25}}}
	tests := []struct {
		pids   []int
		memory int64
		busy   float64
		pid    int
	}{
		{nil, 0, 0, 0}, {[]int{4, 8}, 0, 0, 0}, {[]int{3, 5}, 400, 0.5, 5}, {[]int{1, 3, 9}, 100, 0.75, 3},
		{[]int{9}, 0, 0.25, 9},
	}
	for _, test := range tests {
		memory, busy, largest := u.UsageOf(test.pids)
		if int64(memory) != test.memory || busy != test.busy || largest.PID != test.pid {
			t.Errorf("of %v: %d bytes, busy %g, largest %d, want %d, %g, %d", test.pids, memory, busy, largest.PID,
				test.memory, test.busy, test.pid)
		}
	}
}
