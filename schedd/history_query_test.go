package schedd

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// addEndedJobs adds removed jobs of the present user to the history, with the given
// names. The schedd must not run at that time.
func (p *testPool) addEndedJobs(names ...string) {
	p.Helper()
	user, err := transfer.NewUserAgents().UserName(uint32(os.Geteuid()))
	if err != nil {
		p.Fatal(err)
	}
	h, err := history.Open(p.node.Dir+"/schedd", hostName)
	if err != nil {
		p.Fatal(err)
	}
	defer h.Close()
	me, q := queue.CallerIdentity{User: user, UID: uint32(os.Geteuid())}, queue.New(hostName)
	for _, name := range names {
		ad := classad.New()
		ad.SetString(roost.AttrCmd, "/bin/true")
		ad.SetString(roost.AttrJobName, name)
		ad.SetInt(roost.AttrStartAfter, time.Now().Add(time.Hour).Unix()) // one that is run again waits
		events, ids, _, err := q.SubmitJobs(time.Now(), me, "past "+name+ad.String(),
			[]queue.SubmitSpec{{Ad: ad, Count: 1}}, queue.SubmitLimits{})
		if err != nil {
			p.Fatal(err)
		}
		q.Apply(events[0])
		events, err = q.RemoveTasks(time.Now(), me, queue.TaskSelector{Job: ids[0]}, "", false)
		if err != nil {
			p.Fatal(err)
		}
		q.Apply(events[0])
		key, _ := q.SubmitKey(ids[0].Seq)
		snapshot, _ := q.Snapshot(ids[0].Seq)
		if err := h.Add([]history.JobRecord{{Seq: ids[0].Seq, Key: key, Ended: time.Now(), Snapshot: snapshot}}); err !=
			nil {
			p.Fatal(err)
		}
	}
}

// TestQueryHistory checks that a selector for several jobs finds ended jobs when a query
// asks for the history.
func TestQueryHistory(t *testing.T) {
	p := newPool(t)
	p.stop()
	p.addEndedJobs("a", "b", "c")
	p.start()
	p.submit("k", 1, `JobName = "b"; HoldOnSubmit = true`)
	for _, c := range []struct {
		words   string
		history bool
		want    string // the ids' numbers, or the kind of the error
	}{
		{"@b", true, "4 2"},
		{"@b", false, "4"},
		{"@a", true, "1"},
		{"@a", false, roost.NotFound.Error()},
		{"@z", true, roost.NotFound.Error()},
		{"@a @b", true, "4 1 2"},
		{"1-2", true, "2 1"},
		{"2-9", true, "4 3 2"},
		{"all", true, "4 3 2 1"},
		{"3", true, "3"},
		{"3", false, roost.Finished.Error()},
		{"3 @c", true, "3"},
		{"", true, "4 3 2 1"},
		{"", false, "4"},
	} {
		sel := &wire.Selection{Selectors: strings.Fields(c.words)}
		rows, err := receive(p.client.Query(p.ctx(), &wire.QueryRequest{Selection: sel, History: c.history}))
		got := ""
		for _, row := range rows {
			got += strings.TrimSuffix(row.GetId(), "."+hostName) + " "
		}
		if got = strings.TrimSpace(got); err != nil {
			got = rpc.KindOf(err).Error()
		}
		if got != c.want {
			t.Errorf("%q, history %v: got %s, want %s", c.words, c.history, got, c.want)
		}
	}
}

// TestActOnEndedJob checks that an action on an ended job returns an error that says so.
// The schedd does not assign the number of this job again.
func TestActOnEndedJob(t *testing.T) {
	p := newPool(t)
	p.stop()
	p.addEndedJobs("a")
	p.start()
	if r := p.act(wire.ActRequest_HOLD, "1"); roost.ErrorKind(r.GetKind()) != roost.Finished {
		t.Errorf("got %v", r)
	}
	if ids := p.submit("k", 1, "HoldOnSubmit = true").GetIds(); len(ids) != 1 || ids[0] != "2."+hostName {
		t.Errorf("got %v: the number of a job of the past was given again, or too many", ids)
	}
}
