package schedd

import (
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// TestUsageWindows: the windows of a running task can be read until it ends. Windows of
// other attempts and of impossible times are dropped.
func TestUsageWindows(t *testing.T) {
	p := newPool(t)
	id := p.submit("k", 1, "").GetIds()[0]
	a := receiveNext(t, p.startd.activated, "an attempt").GetAttempt()
	p.startd.started(a)
	now := time.Now().Truncate(5 * time.Minute).Add(-time.Hour)
	at := func(n int) *wire.UsageWindow {
		return &wire.UsageWindow{Begin: now.Add(time.Duration(n) * 5 * time.Minute).UnixMilli(), Wall: 300_000,
			Cpu: int64(n+1) * 60_000}
	}
	stale := &wire.AttemptRef{Job: a.GetJob(), Index: a.GetIndex(), Attempt: a.GetAttempt() + 1}
	p.startd.report(&wire.AttemptUsage{Attempt: stale, Windows: []*wire.UsageWindow{at(0)}},
		&wire.AttemptUsage{Attempt: a, Windows: []*wire.UsageWindow{at(0), at(1)}},
		&wire.AttemptUsage{Attempt: a, Windows: []*wire.UsageWindow{at(0), at(1), {Begin: 1, Wall: 1, Cpu: 1}}})
	windows := func(tasks bool) []*wire.UsageWindow {
		t.Helper()
		rows, err := receive(p.client.Query(p.ctx(), &wire.QueryRequest{Windows: true, Tasks: tasks,
			Selection: &wire.Selection{Selectors: []string{id}}, History: true}))
		if err != nil || len(rows) == 0 {
			t.Fatalf("got %v, %v", rows, err)
		}
		return rows[0].GetWindows()
	}
	for len(windows(true)) < 2 { // the context of the pool ends
	}
	for _, tasks := range []bool{true, false} {
		if w := windows(tasks); len(w) != 2 || w[1].GetCpu() != 120_000 {
			t.Errorf("tasks %v: got %v", tasks, w)
		}
	}
	exit := exitReport(a, &wire.ExitStatus{}, "")
	exit.Windows = []*wire.UsageWindow{at(1), at(2)}
	p.startd.send(&wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: exit}})
	p.await(id, "completed 1")
	if w := windows(true); len(w) != 0 {
		t.Errorf("it has ended and shows %v", w)
	}
}
