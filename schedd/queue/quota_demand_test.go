package queue

import (
	"fmt"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// TestDemand holds what a payer's jobs may hold at once, from their submission to their
// end.
func TestDemand(t *testing.T) {
	d := newTestQueue(t)
	batch := QuotaKey{Owner: "alice", Band: roost.BatchBand, GID: 1000}
	want := func(who QuotaKey, tasks int, cores string) {
		t.Helper()
		if got := d.queue.DemandOf(who); got.Tasks != tasks || got.CPU.String() != cores {
			t.Errorf("%v: got %d tasks with %v cores, want %d with %s", who, got.Tasks, got.CPU, tasks, cores)
		}
	}
	want(batch, 0, "0")
	id := d.submit(2, "RequestCpus = 3")
	want(batch, 2, "6")
	d.submit(1000, "MaxRunning = 10")
	want(batch, 12, "16")
	d.submit(3, `Band = "production"; AccountingGroup = "chem"; RequestMemory = 1024`)
	want(batch, 12, "16")
	want(QuotaKey{Owner: "alice", Group: "chem", Band: roost.ProductionBand, GID: 1000}, 3, "3")

	if got, want := fmt.Sprint(d.queue.TakeChangedDemands()), fmt.Sprint(d.queue.QuotaKeys()); got != want {
		t.Errorf("changed %s, want %s", got, want)
	}
	if got := d.queue.TakeChangedDemands(); got != nil {
		t.Errorf("nothing has changed, and it tells of %v", got)
	}

	a := d.start()
	want(batch, 12, "16") // what runs counts as what waits does
	d.end(a, eventlog.AttemptExit{})
	want(batch, 11, "13")
	e, err := d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: id}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	d.apply(e...)
	want(batch, 10, "10")
	e, err = d.queue.RetryTasks(d.now, alice, TaskSelector{Job: id, Ranges: []eventlog.IndexRange{{First: 1, Last: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(e...)
	want(batch, 11, "13")
}

// TestDemandOf holds how tasks of several kinds count that do not all run at once.
func TestDemandOf(t *testing.T) {
	small, large := roost.Resources{CPU: 1000, Memory: 8 * roost.GiB},
		roost.Resources{CPU: 4000, Memory: roost.GiB, GPUs: 2, GPUMemory: roost.GiB}
	for _, c := range []struct {
		kinds []demandKind
		most  int
		want  QuotaDemand
	}{
		{nil, 0, QuotaDemand{}},
		{[]demandKind{{small, 2}}, 0, QuotaDemand{roost.Resources{CPU: 2000, Memory: 16 * roost.GiB}, 2,
			2, roost.Resources{CPU: 2000, Memory: 16 * roost.GiB}}},
		{[]demandKind{{small, 2}, {large, 1}}, 3, QuotaDemand{roost.Resources{CPU: 6000, Memory: 17 * roost.GiB,
			GPUs: 2}, 3, 3, roost.Resources{CPU: 6000, Memory: 17 * roost.GiB, GPUs: 2}}},
		{[]demandKind{{small, 2}, {large, 1}}, 1, QuotaDemand{roost.Resources{CPU: 4000, Memory: 8 * roost.GiB,
			GPUs: 2}, 1, 3, roost.Resources{CPU: 6000, Memory: 17 * roost.GiB, GPUs: 2}}},
		{[]demandKind{{small, 0}, {large, 0}}, 1, QuotaDemand{}},
	} {
		if got := totalDemand(c.kinds, c.most); got != c.want {
			t.Errorf("%v, %d at once: got %v, want %v", c.kinds, c.most, got, c.want)
		}
	}
}
