package schedd

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// TestSubmitIsDurable checks that a job is on disk when its submitter has the answer. The
// same key gives the same ids, also after the next start of the schedd.
func TestSubmitIsDurable(t *testing.T) {
	p := newPool(t)
	first := p.submit("key", 3, "HoldOnSubmit = true")
	if st, ok := p.recoveredQueue().Status(1); !ok || st.Counts[roost.Held] != 3 {
		t.Fatalf("the log has %v", st)
	}
	for range 2 {
		if again := p.submit("key", 3, "HoldOnSubmit = true"); !again.GetRepeatedKey() ||
			!slices.Equal(again.GetIds(), first.GetIds()) {
			t.Fatalf("got %v, want %v again", again, first)
		}
		p.stop()
		p.start()
	}
}

// TestRunAndAcknowledge checks that a task runs and that its output is stored before its
// end is reported. The schedd acknowledges the end when the log contains it.
func TestRunAndAcknowledge(t *testing.T) {
	p := newPool(t)
	id := p.submit("k", 1, "").GetIds()[0]
	a := receiveNext(t, p.startd.activated, "an attempt")
	if st, _ := p.recoveredQueue().Status(1); st.Counts[roost.Starting] != 1 {
		t.Fatalf("the attempt was sent, and the log has %v", st.Counts)
	}
	p.startd.started(a.GetAttempt())
	p.await(id, "running 1")
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{}, "hello\n")
	p.await(id, "completed 1")
	spooled, err := os.ReadFile(filepath.Join(p.node.Dir, "schedd", "spool", "1", "0.1.out"))
	if err != nil || string(spooled) != "hello\n" {
		t.Fatalf("the end is told, and the spool has %q, %v", spooled, err)
	}
	receiveNext(t, p.startd.acknowledged, "an acknowledgement")
	// or it has left the queue already
	if st, ok := p.recoveredQueue().Status(1); ok && st.Counts[roost.Completed] != 1 {
		t.Fatalf("the end was acknowledged, and the log has %v", st.Counts)
	}
	chunks, err := receive(p.client.Logs(p.ctx(), &wire.LogsRequest{Id: id}))
	if err != nil || len(chunks) != 1 || string(chunks[0].GetData()) != "hello\n" {
		t.Fatalf("got %v, %v", chunks, err)
	}
}

// TestRecovery checks that a restarted schedd resumes what runs and records what has
// ended. It creates again what is lost.
func TestRecovery(t *testing.T) {
	p := newPool(t)
	id := p.submit("k", 3, "").GetIds()[0]
	var claims []*wire.ClaimState
	for range 3 {
		a := receiveNext(t, p.startd.activated, "an attempt")
		p.startd.started(a.GetAttempt())
		claims = append(claims, &wire.ClaimState{Claim: a.GetClaim(), Attempt: a.GetAttempt(), Running: true,
			Grant: a.GetClaim(), Epoch: 1})
	}
	p.await(id, "running 3")
	p.stop()
	claims[1].Running, claims[1].Exited = false,
		exitReport(claims[1].GetAttempt(), &wire.ExitStatus{}, "while you slept\n")
	p.startd.setReportedClaims(claims[0], claims[1])
	p.start()
	if a := receiveNext(t, p.startd.acknowledged,
		"an acknowledgement"); a.GetIndex() != claims[1].GetAttempt().GetIndex() {
		t.Fatalf("%v was acknowledged", a)
	}
	again := receiveNext(t, p.startd.activated, "the attempt after the lost one")
	if a := again.GetAttempt(); a.GetIndex() != claims[2].GetAttempt().GetIndex() || a.GetAttempt() != 2 {
		t.Fatalf("%v is the next attempt", a)
	}
	p.await(id, "starting 1 running 1 completed 1")
	p.startd.started(again.GetAttempt())
	p.startd.exited(again.GetAttempt(), &wire.ExitStatus{}, "")
	p.startd.exited(claims[0].GetAttempt(), &wire.ExitStatus{Code: 3}, "")
	p.await(id, "completed 3 failed 1")
}

// TestWatchedEnd checks that a watch with a long interval reports the end of its last job
// at once.
func TestWatchedEnd(t *testing.T) {
	p := newPool(t)
	ids := []string{p.submit("a", 1, "").GetIds()[0], p.submit("b", 1, "").GetIds()[0]}
	stream, err := p.client.Watch(p.ctx(), &wire.WatchRequest{
		Selection: &wire.Selection{Selectors: ids}, IntervalMs: uint32(time.Hour.Milliseconds()),
	})
	if err != nil {
		t.Fatal(err)
	}
	var running []*wire.AttemptRef
	for range ids {
		a := receiveNext(t, p.startd.activated, "an attempt").GetAttempt()
		p.startd.started(a)
		running = append(running, a)
	}
	if _, err := stream.Recv(); err != nil { // from now on the interval counts
		t.Fatal(err)
	}
	for _, a := range running {
		p.startd.exited(a, &wire.ExitStatus{}, "")
	}
	for {
		if _, err := stream.Recv(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestHoldDuringRun checks that a hold during the run ends the attempt, with a checkpoint
// where one is possible. No other attempt starts until the release (P8).
func TestHoldDuringRun(t *testing.T) {
	p := newPool(t)
	id := p.submit("k", 1, "").GetIds()[0]
	a := receiveNext(t, p.startd.activated, "an attempt").GetAttempt()
	p.startd.started(a)
	p.await(id, "running 1")
	if r := p.act(wire.ActRequest_HOLD, id); r.GetError() != "" {
		t.Fatal(r.GetError())
	}
	if v := receiveNext(t, p.startd.vacated, "an order to end it"); v.GetCause() != wire.Cause_CAUSE_VACATED ||
		v.GetFast() {
		t.Fatalf("got %v", v)
	}
	p.startd.exited(a, &wire.ExitStatus{Signal: 15, Cause: wire.Cause_CAUSE_REMOVED}, "")
	if st := p.await(id, "held 1"); !strings.HasPrefix(st.GetReason(), "by ") {
		t.Errorf("it is held for %q", st.GetReason())
	}
	receiveNext(t, p.startd.acknowledged, "an acknowledgement")
	// of the same request: whatever is free takes it, and not the held one
	other := p.submit("other", 1, "").GetIds()[0]
	b := receiveNext(t, p.startd.activated, "the other job's attempt").GetAttempt()
	if b.GetJob() == a.GetJob() {
		t.Fatal("a held task was started")
	}
	p.startd.exited(b, &wire.ExitStatus{}, "")
	p.await(other, "completed 1")
	p.act(wire.ActRequest_RELEASE, id)
	if c := receiveNext(t, p.startd.activated, "the attempt after the release").GetAttempt(); c.GetJob() !=
		a.GetJob() || c.GetAttempt() != 2 {
		t.Fatalf("got %v", c)
	}
}

// TestUserCalls checks the answers to the calls of users. It also checks that a watch
// ends with its jobs.
func TestUserCalls(t *testing.T) {
	p := newPool(t)
	held := p.submit("held", 2, `JobName = "h"; HoldOnSubmit = true`).GetIds()[0]
	ran := p.submit("ran", 1, `JobName = "r"`).GetIds()[0]
	p.startd.exited(receiveNext(t, p.startd.activated, "an attempt").GetAttempt(), &wire.ExitStatus{Code: 2}, "")
	if _, err := receive(p.client.Watch(p.ctx(),
		&wire.WatchRequest{Selection: &wire.Selection{Selectors: []string{ran}}})); err != nil {
		t.Fatalf("the watch of a job that ends: %v", err)
	}
	if rows := p.query(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{held}},
		Tasks: true}); len(rows) != 2 || rows[1].GetState() != "held" {
		t.Errorf("tasks: got %v", rows)
	}
	if rows := p.query(&wire.QueryRequest{Selection: &wire.Selection{States: []string{"failed"}}}); len(rows) != 1 ||
		rows[0].GetId() != ran {
		t.Errorf("failed jobs: got %v", rows)
	}
	if r := p.act(wire.ActRequest_HOLD, held); roost.ErrorKind(r.GetKind()) != roost.Conflict {
		t.Errorf("hold of a held job: got %v", r)
	}
	if r := p.act(wire.ActRequest_REMOVE, held); r.GetTasks() != 2 || r.GetError() != "" {
		t.Errorf("removal: got %v", r)
	}
	if r := p.act(wire.ActRequest_REMOVE, "99"); roost.ErrorKind(r.GetKind()) != roost.NotFound {
		t.Errorf("removal of what is not there: got %v", r)
	}
	if why, err := p.client.Why(p.ctx(), &wire.WhyRequest{Id: held}); err != nil ||
		!strings.Contains(why.GetSummary(), "removed") {
		t.Errorf("why: got %v, %v", why, err)
	}
	events, err := receive(p.client.Events(p.ctx(), &wire.EventsRequest{Id: ran}))
	var timeline []string
	for _, e := range events {
		timeline = append(timeline, e.GetWhat())
	}
	if got := strings.Join(timeline, " "); err != nil || got != "submitted assigned completed" {
		t.Errorf("events: got %q, %v", got, err)
	}
}

// TestLogsOfAttempts checks that the output of earlier attempts can be read.
func TestLogsOfAttempts(t *testing.T) {
	p := newPool(t)
	id := p.submit("k", 1, "MaxRetries = 2").GetIds()[0]
	for n, text := range []string{"one\n", "two\n", "three\n"} {
		a := receiveNext(t, p.startd.activated, "an attempt")
		p.startd.started(a.GetAttempt())
		p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Code: int32(2 - n)}, text)
	}
	p.await(id, "completed 1")
	for _, test := range []struct {
		req  *wire.LogsRequest
		want string
	}{
		{&wire.LogsRequest{}, "3 three\n"}, {&wire.LogsRequest{Attempt: 3}, "3 three\n"},
		{&wire.LogsRequest{Attempt: 1}, "1 one\n"}, {&wire.LogsRequest{Attempt: 1, Follow: true}, "1 one\n"},
		{&wire.LogsRequest{Previous: true}, "2 two\n"}, {&wire.LogsRequest{Previous: true, Tail: 2}, "2 o\n"},
		{&wire.LogsRequest{Attempt: 4}, "it has no attempt 4; the last one is 3"},
		{&wire.LogsRequest{Attempt: math.MaxUint32}, "not kept any more"},
		{&wire.LogsRequest{Attempt: 2, Stderr: true}, "not kept any more"},
	} {
		test.req.Id = id
		chunks, err := receive(p.client.Logs(p.ctx(), test.req))
		got := fmt.Sprint(err)
		if err == nil && len(chunks) == 1 {
			got = fmt.Sprintf("%d %s", chunks[0].GetAttempt(), chunks[0].GetData())
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%v: got %q, want %q", test.req, got, test.want)
		}
	}
}
