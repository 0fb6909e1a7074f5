package api

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/peers"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestActParts checks that an administrator's act on jobs of several schedds is split by
// schedd. The parts have the order of the words. For other users only jobs in the queue
// of the cell are passed on, and this schedd refuses the rest. A word that means jobs in
// two queues is a part of its own.
func TestActParts(t *testing.T) {
	s := New(Config{Node: &config.Node{Name: "n1", Pool: "physics", Schedd: &config.ScheddSettings{}},
		Peers: peers.New("n1", nil, slog.New(slog.DiscardHandler)), Admins: new(peers.JobAdmins)})
	s.peerSchedds.OnAdChanged(time.Unix(0, 0), []adclient.AdChange{{Name: "n2", Ad: "[]"},
		{Name: "physics", Ad: "[]"}})
	s.admins.Set([]string{"ann@n1", "bob"})
	words := []string{"1", "2.n1", "3.n2", "4[7].n2", "@name", "5.n3", "6.physics"}
	parts := func(user string, verb wire.ActRequest_Verb) string {
		nodes, parts := s.splitAct(&wire.ActRequest{Verb: verb, Selection: &wire.Selection{Selectors: words}},
			queue.CallerIdentity{User: user, Host: "n1"})
		text := ""
		for i := range nodes {
			text += fmt.Sprintf("%s%v ", nodes[i], parts[i].GetSelection().GetSelectors())
		}
		return text
	}
	const (
		here  = "[1 2.n1 3.n2 4[7].n2 @name 5.n3 6.physics] "
		own   = "[1 2.n1 3.n2 4[7].n2] [@name] [5.n3] physics[6.physics] "
		apart = "[1 2.n1] n2[3.n2 4[7].n2] [@name] [5.n3] physics[6.physics] "
	)
	for _, c := range []struct {
		user string
		verb wire.ActRequest_Verb
		want string
	}{
		{"ann", wire.ActRequest_HOLD, apart}, {"bob", wire.ActRequest_REMOVE, apart},
		{"cat", wire.ActRequest_HOLD, own}, {"", wire.ActRequest_HOLD, here},
		{"ann", wire.ActRequest_ORDER, here},
	} {
		if got := parts(c.user, c.verb); got != c.want {
			t.Errorf("%s, %v: got %s, want %s", c.user, c.verb, got, c.want)
		}
	}
	if nodes, _ := s.splitAct(&wire.ActRequest{}, queue.CallerIdentity{User: "ann"}); len(nodes) != 1 ||
		nodes[0] != "" {
		t.Errorf("without words: got %q", nodes)
	}
}
