package doctor

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
)

// TestJudgeCell holds what the doctor says on each kind of central manager.
func TestJudgeCell(t *testing.T) {
	n := &config.Node{Name: "c1", Dir: "/d", Negotiators: []string{"a:1"},
		Negotiator: &config.NegotiatorSettings{Listen: []string{"a:1"}}}
	up := func(roles ...string) (all []*wire.CellMember) {
		for i, role := range roles {
			all = append(all, &wire.CellMember{Name: "c" + string(rune('1'+i)), Role: role, Version: "1"})
		}
		return all
	}
	for _, tt := range []struct {
		name   string
		status *wire.CellStatus
		level  checkLevel
		want   string
	}{
		{"leader", &wire.CellStatus{Members: up("leader", "follower", "follower"), Spare: 1, Leader: "a:1"}, levelOK,
			"this one leads"},
		{"follower", &wire.CellStatus{Members: up("follower", "leader", "follower"), Spare: 1, Leader: "b:1"}, levelOK,
			"this one follows"},
		{"one is away", &wire.CellStatus{Members: up("leader", "follower", "unreachable"), Spare: 0, Leader: "a:1"},
			levelWarning, "c3 at "},
		{"isolated", &wire.CellStatus{Members: up("follower", "unreachable", "unreachable"), Spare: -1, Says: "c1"},
			levelError, "1 more of those that vote must be reached"},
		{"nobody leads", &wire.CellStatus{Members: up("follower", "follower", "follower"), Spare: 1}, levelWarning,
			"ask again in a few seconds"},
		{"no cell", &wire.CellStatus{Says: "c1"}, levelError, "roost cell add a:1"},
		{"even", &wire.CellStatus{Members: up("leader", "follower"), Spare: 0, Leader: "a:1"}, levelWarning,
			"2 bear the loss of no more than 1 would"},
		{"learner", &wire.CellStatus{Members: up("leader", "learner"), Spare: 0, Leader: "a:1"}, levelWarning,
			"no vote yet"},
	} {
		worst, text := levelOK, ""
		for _, f := range negotiatorReplicas(n).checkCell(tt.status) {
			if f.Level == levelError || f.Level == levelWarning && worst == levelOK {
				worst = f.Level
			}
			text += f.Text + " -> " + f.Hint + "\n"
		}
		if worst != tt.level || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %s, want %s and %q:\n%s", tt.name, worst, tt.level, tt.want, text)
		}
	}
	n.CellQueue = &config.CellQueueSettings{Member: "a:7"}
	if f := queueReplicas(n).checkCell(&wire.CellStatus{Says: "c1"}); f[0].Level != levelError ||
		!strings.Contains(f[0].Hint, "roost cell add a:7 --queue") {
		t.Errorf("a member of the cell's queue without others: %v", f)
	}
}
