package negotiator

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// TestWaitReasons compares the reasons of the metrics with the matcher's, by number.
func TestWaitReasons(t *testing.T) {
	for kind := match.SeveralReasons; kind <= match.PartOnly; kind++ {
		if got := metrics.WaitReason(kind.String()); got != int(kind) {
			t.Errorf("%v: %d, want %d", kind, got, kind)
		}
	}
	if metrics.UnexplainedWait != int(match.PartOnly)+1 {
		t.Errorf("the metrics have %d reasons, and the matcher %d", metrics.UnexplainedWait, match.PartOnly+1)
	}
}

func TestReplicaSnapshot(t *testing.T) {
	s := replicaSnapshot(replica.CellStatus{LastIndex: 5000, Members: []replica.CellMember{
		{Name: "a", IsVoter: true, Reachable: true, LastIndex: 5000},
		{Name: "b", IsVoter: true, Reachable: true, LastIndex: 4990},
		{Name: "c", IsVoter: true, Reachable: true, LastIndex: 100},
		{Name: "d", IsVoter: true},
		{Name: "e", Reachable: true, LastIndex: 5001}, // a learner that has more than was known
	}})
	if want := [3]int{2, 1, 1}; s.States != want {
		t.Errorf("current, behind, silent: %v, want %v", s.States, want)
	}
	if s.Behind["b"] != 10 || s.Behind["c"] != 4900 || s.Behind["e"] != 0 || len(s.Behind) != 4 {
		t.Errorf("behind: %v", s.Behind)
	}
}

// TestSnapshotOfManyMachines makes a snapshot of 10,000 machines and of the groups of
// 1,000 users. An administrator has drained a machine.
func TestSnapshotOfManyMachines(t *testing.T) {
	const machines = 10_000
	l := newLoop("n", "n:1", newLedgerStore(nil), newLeadership(), time.Second, slog.New(slog.DiscardHandler))
	var all []machineUpdate
	for i := range machines {
		ad := classad.New()
		ad.SetInt(roost.AttrTotalCpus, 8)
		ad.SetInt(roost.AttrCpus, int64(i%8))
		ad.SetString(roost.AttrState, []string{"Claimed", "Owner"}[i%2])
		name := fmt.Sprintf("m%05d", i)
		all = append(all, machineUpdate{name, &inventoryMachine{Machine: match.NewMachine(name, 1, 1, ad)}})
	}
	l.inventory.applyUpdates(all, true)
	now := time.Unix(1_000_000, 0)
	follower := l.metrics.snapshot(now)
	if want := [metrics.AmountStates]float64{4.5 * machines, 1.5 * machines, 0, 2 * machines}; follower.Cores != want ||
		follower.IsLeader || follower.Machines != machines {
		t.Errorf("a follower sees %+v, want %v", follower, want)
	}
	l.cell = newCell(3, l.inventory, nil, l.log)
	l.cell.drains = []match.MachineDrain{{Node: "m00007"}, {Node: "m00006", From: now.Add(time.Hour)}}
	l.cell.planCount = 5
	requests := map[uint64]*scheddRequest{1: {lastWaitedPlan: 5}, 2: {lastWaitedPlan: 4},
		3: {lastWaitedPlan: 5, explainedAt: now, explainedReason: metrics.WaitReason("busy")}}
	l.cell.schedds["s"] = &scheddState{name: "s", sendQueue: newSendQueue(), requests: requests}
	l.cell.schedds["away"] = &scheddState{name: "away", requests: requests}
	for i := range 1000 {
		who := fairshare.Submitter{Owner: fmt.Sprintf("u%d", i), Group: []string{"", "Physics", "bio.cell"}[i%3]}
		l.cell.chargedCores[who] = 2
	}
	began := time.Now()
	leader := l.metrics.snapshot(now)
	took := time.Since(began)
	if leader.Cores[metrics.DrainedAmount] != 7 || leader.Schedds != 1 || leader.GroupCores["none"] != 668 ||
		leader.GroupCores["physics"] != 666 || leader.GroupCores["bio.cell"] != 666 {
		t.Errorf("the leader sees %+v", leader)
	}
	if leader.Unplaced[metrics.UnexplainedWait] != 1 || leader.Unplaced[metrics.WaitReason("busy")] != 1 {
		t.Errorf("requests wait for %v", leader.Unplaced)
	}
	t.Logf("a snapshot of %d machines takes %v", machines, took)
}
