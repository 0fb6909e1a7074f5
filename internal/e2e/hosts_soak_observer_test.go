package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/wire"
)

// TestObserver gives the soak's auditor the lines and logs of pools: one without
// violations, and some with one violation each.
func TestObserver(t *testing.T) {
	id := roost.JobID{Seq: 1, Host: "submit"}
	began := time.Unix(1_000_000, 0)
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	line := func(what string, number int, seconds float64, node string) string {
		return fmt.Sprintf("%s 0 %d %d %s\n", what, number, at(seconds).UnixNano(), node)
	}
	event := func(what string, number int, seconds float64, node string) *wire.JobEvent {
		return &wire.JobEvent{What: what, Id: "1.submit", Attempt: uint32(number), Time: at(seconds).UnixNano(),
			Node: node, Exit: &wire.ExitStatus{}}
	}
	once := []*wire.JobEvent{event("assigned", 1, 1, "exec1"), event("completed", 1, 4, "exec1")}
	twice := []*wire.JobEvent{event("assigned", 1, 1, "exec1"), event("lost", 1, 20, "exec1"),
		event("assigned", 2, 21, "exec2"), event("completed", 2, 25, "exec2")}
	for _, tt := range []struct {
		name      string
		events    []*wire.JobEvent
		lines     string
		alive     float64 // when a process of the first attempt was last seen
		errand    soakJob
		absent    hostSilence
		guarantee audit.Guarantee // 0: no violation
	}{
		{name: "a task runs", events: once, lines: line("start", 1, 2, "exec1") + line("end", 1, 3, "exec1")},
		{name: "it is lost with its node and runs again", events: twice, alive: 12,
			lines:  line("start", 1, 2, "exec1") + line("start", 2, 22, "exec2") + line("end", 2, 24, "exec2"),
			absent: hostSilence{from: at(5), to: at(30), host: "exec1"}},
		{name: "two attempts live", events: twice, alive: 23, lines: line("start", 1, 2, "exec1") +
			line("start", 2, 22, "exec2") + line("end", 2, 24, "exec2"), guarantee: 4},
		{name: "a lock tells of two", events: twice,
			lines: line("start", 1, 2, "exec1") + line("overlap", 2, 22, "exec2"), guarantee: 4},
		{name: "a sleeper finds another when it wakes, and goes", events: twice, alive: 23,
			absent: hostSilence{from: at(5), to: at(23.2), host: "exec1", wasAsleep: true},
			lines:  line("start", 1, 2, "exec1") + line("start", 2, 22, "exec2") + line("end", 2, 24, "exec2")},
		{name: "one outlives its lease", events: []*wire.JobEvent{event("assigned", 1, 1, "exec1"), event("completed",
			1, 51, "exec1")}, absent: hostSilence{from: at(5), to: at(60), host: "exec1"}, guarantee: 10,
			lines: line("start", 1, 2, "exec1") + line("end", 1, 50, "exec1")},
		{name: "the end is recorded twice", events: append(once, event("completed", 1, 5, "exec1")),
			lines: line("start", 1, 2, "exec1") + line("end", 1, 3, "exec1"), guarantee: 3},
		{name: "one starts after the end", events: append(once, event("assigned", 2, 5, "exec1")),
			lines: line("start", 1, 2, "exec1") + line("end", 1, 3, "exec1"), guarantee: 3},
		{name: "what is complete never ended", events: once, lines: line("start", 1, 2, "exec1"), guarantee: 3},
		{name: "one starts after a hold", events: once,
			lines:  line("start", 1, 2, "exec1") + line("end", 1, 3, "exec1"),
			errand: soakJob{holds: []holdInterval{{at(0.5), at(9)}}}, guarantee: 8},
		{name: "one is never done", events: once[:1], guarantee: 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &soakPool{cellHostPool: &cellHostPool{hostPool: &hostPool{T: t, dir: t.TempDir()}},
				desk: &ownedDesktop{testHost: &testHost{name: "desk1"}}, began: began,
				lastSeen: map[heartbeatSpan]time.Time{}}
			w := tt.errand
			w.key, w.id, w.submitNode, w.count, w.codes, w.acknowledgedAt = "k", "1.submit", "submit", 1, 1, at(0.1)
			if err := os.WriteFile(filepath.Join(s.dir, "ledger-k"), []byte(tt.lines), 0o600); err != nil {
				t.Fatal(err)
			}
			if tt.alive > 0 {
				s.lastSeen[heartbeatSpan{"k", attemptRecord{0, 1}}] = at(tt.alive)
			}
			o := &soakObserver{soakPool: s, claims: map[heartbeatSpan]uint64{},
				diskFullAttempts: map[heartbeatSpan]bool{}}
			for node, cores := range s.availableCores() {
				o.addRecord(began, audit.Event{Type: audit.Offered, Node: node,
					Resources: roost.Resources{CPU: roost.MilliCPU(1000 * cores)}})
			}
			o.addAcknowledged(&w, id, at(0))
			o.addLogEvents(id, tt.events)
			o.addTaskLines(&w, id)
			for _, number := range []roost.AttemptNumber{1, 2} {
				o.addRecord(at(3.5), audit.Event{Type: audit.OutputStored, Job: id, Attempt: number})
			}
			o.addSilence(tt.absent)
			broken := o.violations(at(100))
			if tt.guarantee == 0 && len(broken) > 0 ||
				tt.guarantee != 0 && (len(broken) == 0 || broken[0].Guarantee != tt.guarantee) {
				t.Errorf("got %v, want %v", broken, tt.guarantee)
			}
		})
	}
}
