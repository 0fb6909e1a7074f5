package schedd

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/journal"
)

// damageJob flips two bits of each place of the job log that has a word.
func (p *testPool) damageJob(word string) {
	p.Helper()
	path := filepath.Join(p.node.Dir, "schedd", journal.FileName)
	b, err := os.ReadFile(path)
	if err != nil {
		p.Fatal(err)
	}
	places := bytes.Count(b, []byte(word))
	b = bytes.ReplaceAll(b, []byte(word), append([]byte{word[0], word[1] ^ 5}, word[2:]...))
	if err := os.WriteFile(path, b, 0o600); err != nil || places == 0 {
		p.Fatalf("%q is in %d places: %v", word, places, err)
	}
}

// TestTakenOutByARepair checks that lists, why and the history name a job that a repair
// removed. They do in this start of the schedd and in later ones. The job cannot be run
// again.
func TestTakenOutByARepair(t *testing.T) {
	p := newPool(t)
	for _, name := range []string{"intact", "spoiled"} {
		p.submit(name, 1, `StartAfter = 4000000000; JobName = "`+name+`"`)
	}
	p.stop()
	dir := filepath.Join(p.node.Dir, "schedd")
	j, q, err := journal.Open(dir, hostName)
	if err != nil {
		t.Fatal(err)
	}
	c := &journal.QueueCheckpoint{Jobs: map[uint64][]byte{}, LastSeq: q.LastSeq()}
	for seq := uint64(1); seq <= 2; seq++ {
		c.Jobs[seq], _ = q.Snapshot(seq)
	}
	if err := errors.Join(j.StartCheckpoint(c), j.WriteCheckpoint(c)); err != nil {
		t.Fatal(err)
	}
	j.Close()
	p.damageJob("spoiled")
	report, err := journal.Repair(dir, hostName, time.Now(), false)
	if err != nil || !strings.Contains(strings.Join(report.Actions, "\n"), "job 2."+hostName+" is taken out") {
		t.Fatalf("got %v, %v", report, err)
	}
	for range 2 {
		p.start()
		rows := p.query(&wire.QueryRequest{History: true, Selection: &wire.Selection{Selectors: []string{"2"}}})
		if len(rows) != 1 || rows[0].GetOwner() != unknownOwner || !strings.Contains(rows[0].GetReason(),
			"taken out by a repair on ") || !strings.Contains(rows[0].GetReason(), report.DamagedPath) {
			t.Fatalf("the list has %v", rows)
		}
		if rows := p.query(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{"1"}}}); len(rows) != 1 {
			t.Errorf("what is intact: %v", rows)
		}
		why, err := p.client.Why(p.ctx(), &wire.WhyRequest{Id: "2"})
		if err != nil || !strings.Contains(why.GetSummary(), "taken out by a repair on ") ||
			!strings.Contains(why.GetSummary(), "its record was damaged") {
			t.Errorf("why: %v, %v", why, err)
		}
		events, err := receive(p.client.Events(p.ctx(), &wire.EventsRequest{Id: "2"}))
		if err != nil || len(events) != 1 || !strings.Contains(events[0].String(), "its record was damaged") {
			t.Errorf("its history: %v, %v", events, err)
		}
		if r := p.act(wire.ActRequest_RETRY, "2"); !strings.Contains(r.GetError(), "submit it again") {
			t.Errorf("it is run again: %v", r)
		}
		p.stop()
	}
	if jobs := removedJobs(t, dir); len(jobs) != 0 {
		t.Errorf("the log still has %v", jobs)
	}
}

func removedJobs(t *testing.T, dir string) []journal.RemovedJob {
	t.Helper()
	j, _, err := journal.Open(dir, hostName)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	jobs, err := j.RemovedJobs()
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}
