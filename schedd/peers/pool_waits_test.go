package peers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestAddWaits adds what the tasks of many schedds wait for. The list stays short, and no
// task is lost.
func TestAddWaits(t *testing.T) {
	n := New("own", nil, nil)
	all := &wire.WaitSummary{}
	for i := range 100 {
		name := fmt.Sprintf("s%d", i)
		from := &wire.WaitSummary{QueuedTasks: 100, RunningTasks: 1, Waiting: []*wire.WaitReasonCount{
			{Reason: "busy", Tasks: 50}}}
		for k := range 100 {
			from.Waiting = append(from.Waiting, &wire.WaitReasonCount{Reason: fmt.Sprintf("r%d", i*100+k), Tasks: 1})
		}
		from.Oldest = []*wire.OldestWait{{Band: "batch", Id: "1." + name, Since: int64(1000 - i)},
			{Band: "batch", Id: "1.own", Since: 1}, {Band: strings.Repeat("x", 1000), Id: "1." + name, Since: 1}}
		AddWaits(all, n.ownWaits(name, from))
	}
	tasks := uint64(0)
	for _, w := range all.GetWaiting() {
		tasks += w.GetTasks()
	}
	if len(all.GetWaiting()) > maxReasons || tasks != 100*150 || all.GetQueuedTasks() != 10_000 ||
		all.GetRunningTasks() != 100 {
		t.Errorf("%d reasons with %d tasks of %d", len(all.GetWaiting()), tasks, all.GetQueuedTasks())
	}
	if w := all.GetWaiting()[0]; w.GetReason() != otherReason && w.GetReason() != "busy" {
		t.Errorf("the first reason is %v", w)
	}
	if o := all.GetOldest(); len(o) != 1 || o[0].GetId() != "1.s99" {
		t.Errorf("the oldest: %v", o)
	}
}
