package cellstate

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// TestOverSoftLimits checks which claims are beyond soft limits. They are the youngest,
// as many as are too many, of the limit's subject and queue.
func TestOverSoftLimits(t *testing.T) {
	claim := func(id uint64, owner, queue string, since int64) match.MachineClaim {
		return match.MachineClaim{ID: id, Submitter: fairshare.Submitter{Owner: owner, Group: "sci"}, Queue: queue,
			TaskStarted: since, Resources: roost.Resources{CPU: 2000}}
	}
	leaving := claim(4, "ann", "short", 900)
	leaving.Vacating = true
	p := &CellState{Machines: []*match.Machine{
		{Name: "m1", Claims: []match.MachineClaim{claim(1, "ann", "short", 100), claim(2, "ann", "long", 800),
			claim(3, "bob", "short", 700), leaving}},
		{Name: "m2", Claims: []match.MachineClaim{claim(1, "ann", "short", 300), claim(2, "ann", "short", 200),
			claim(3, "ann", "short", 0)}},
	}}
	limit := func(queue, of string, class ledger.SubjectKind, name string, by int) softExcess {
		b := ledger.LimitBound{SubjectKind: class, Name: name}
		most := 0
		if name == "sci" {
			most = 1000
		}
		return softExcess{&requestRunLimit{max: most, LimitRequest: match.LimitRequest{Limit: limitKey(queue, of, b,
			true)}, LimitBound: b, queue: queue, amount: of, soft: true}, by}
	}
	unseen := limit("short", "", ledger.OfUser, "ann", 1)
	unseen.max = 4
	for _, x := range []struct {
		name     string
		excesses []softExcess
		want     []match.ClaimKey
	}{
		{"none", nil, nil},
		{"one of a user in a queue", []softExcess{limit("short", "", ledger.OfUser, "ann", 1)},
			[]match.ClaimKey{{Machine: "m2", ID: 1}}},
		{"more than there are", []softExcess{limit("short", "", ledger.OfUser, "ann", 9)},
			[]match.ClaimKey{{Machine: "m1", ID: 1}, {Machine: "m2", ID: 1}, {Machine: "m2", ID: 2}}},
		{"of what no machine shows yet", []softExcess{unseen}, nil},
		{"of a user anywhere", []softExcess{limit("", "", ledger.OfUser, "ann", 2)},
			[]match.ClaimKey{{Machine: "m1", ID: 2}, {Machine: "m2", ID: 1}}},
		{"cores of a group", []softExcess{limit("", "cpus", ledger.OfGroup, "sci", 3000)},
			[]match.ClaimKey{{Machine: "m1", ID: 2}, {Machine: "m1", ID: 3}}},
		{"of all in a queue, and of a user", []softExcess{limit("short", "", ledger.AllSubjects, "", 1),
			limit("long", "", ledger.OfUser, "ann", 1)},
			[]match.ClaimKey{{Machine: "m1", ID: 2}, {Machine: "m1", ID: 3}}},
		{"of a Unix group, which no machine knows", []softExcess{limit("", "", ledger.OfUnixGroup, "users", 2)}, nil},
	} {
		got := p.claimsOverSoftLimits(x.excesses)
		if len(got) != len(x.want) {
			t.Errorf("%s: got %v, want %v", x.name, got, x.want)
		}
		for _, key := range x.want {
			if got[key] == "" {
				t.Errorf("%s: %v is not among %v", x.name, key, got)
			}
		}
	}
}
