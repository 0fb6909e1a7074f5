package picture

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/share"
)

// TestBeyond holds which claims are beyond soft limits: the youngest, as many as are too many, of whom and in which queue the limit is.
func TestBeyond(t *testing.T) {
	claim := func(id uint64, owner, queue string, since int64) match.Claim {
		return match.Claim{ID: id, Submitter: share.Submitter{Owner: owner, Group: "sci"}, Queue: queue, Since: since, Resources: roost.Resources{CPU: 2000}}
	}
	leaving := claim(4, "ann", "short", 900)
	leaving.Leaving = true
	p := &Picture{Machines: []*match.Machine{
		{Name: "m1", Claims: []match.Claim{claim(1, "ann", "short", 100), claim(2, "ann", "long", 800), claim(3, "bob", "short", 700), leaving}},
		{Name: "m2", Claims: []match.Claim{claim(1, "ann", "short", 300), claim(2, "ann", "short", 200), claim(3, "ann", "short", 0)}},
	}}
	limit := func(queue, of string, class ledger.Class, name string, by int) excess {
		b := ledger.Bound{Of: class, Name: name}
		most := 0
		if name == "sci" {
			most = 1000
		}
		return excess{&runLimit{most: most, Take: match.Take{Limit: limitKey(queue, of, b, true)}, Bound: b, queue: queue, of: of, soft: true}, by}
	}
	unseen := limit("short", "", ledger.OfUser, "ann", 1)
	unseen.most = 4
	for _, x := range []struct {
		name     string
		excesses []excess
		want     []match.ClaimKey
	}{
		{"none", nil, nil},
		{"one of a user in a queue", []excess{limit("short", "", ledger.OfUser, "ann", 1)}, []match.ClaimKey{{Machine: "m2", ID: 1}}},
		{"more than there are", []excess{limit("short", "", ledger.OfUser, "ann", 9)}, []match.ClaimKey{{Machine: "m1", ID: 1}, {Machine: "m2", ID: 1}, {Machine: "m2", ID: 2}}},
		{"of what no machine shows yet", []excess{unseen}, nil},
		{"of a user anywhere", []excess{limit("", "", ledger.OfUser, "ann", 2)}, []match.ClaimKey{{Machine: "m1", ID: 2}, {Machine: "m2", ID: 1}}},
		{"cores of a group", []excess{limit("", "cpus", ledger.OfGroup, "sci", 3000)}, []match.ClaimKey{{Machine: "m1", ID: 2}, {Machine: "m1", ID: 3}}},
		{"of all in a queue, and of a user", []excess{limit("short", "", ledger.Everybody, "", 1), limit("long", "", ledger.OfUser, "ann", 1)}, []match.ClaimKey{{Machine: "m1", ID: 2}, {Machine: "m1", ID: 3}}},
		{"of a Unix group, which no machine knows", []excess{limit("", "", ledger.OfUnixGroup, "users", 2)}, nil},
	} {
		got := p.beyond(x.excesses)
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
