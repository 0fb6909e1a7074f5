package clitest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// FakeSchedd is a schedd with a few jobs. Its fields say what it answers, and record what
// it was asked.
type FakeSchedd struct {
	wire.UnimplementedScheddServer
	Jobs, Tasks      []*wire.JobStatus
	Machines         []string
	WatchFunc        func(grpc.ServerStreamingServer[wire.WatchEvent]) error
	LogsFunc         func(*wire.LogsRequest, grpc.ServerStreamingServer[wire.LogChunk]) error
	Explanation      *wire.WhyReply
	Ledger           *ledger.Ledger
	ConcurrentEvents []ledger.AdminCommand // commands of others, applied just before the next one
	JobEvents        []*wire.JobEvent
	Silent           []*wire.Silent
	CellCheckpoint   []byte
	NoJobs           bool // it has no jobs
	DeniesChanges    bool // nobody may set anything

	Mu          sync.Mutex
	LostReplies int // how many answers to submits are lost
	Submitted   []*wire.SubmitRequest
	Acted       []*wire.ActRequest
	Removed     chan struct{} // closed by the first removal
}

// Serve starts the fake in a directory of its own, which it returns.
func (f *FakeSchedd) Serve(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cli")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := rpc.Listen("unix:"+filepath.Join(dir, "run", "schedd.sock"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	f.serveSocket(t, l)
	return dir
}

func (f *FakeSchedd) serveSocket(t *testing.T, l net.Listener) {
	server := rpc.NewServer(nil, peer.MethodAccess())
	wire.RegisterScheddServer(server, f)
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-done })
}

// Submit records the request and gives ids from 70 on.
func (f *FakeSchedd) Submit(_ context.Context, req *wire.SubmitRequest) (*wire.SubmitReply, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	repeated := slices.ContainsFunc(f.Submitted, func(r *wire.SubmitRequest) bool { return r.GetKey() == req.GetKey() })
	f.Submitted = append(f.Submitted, req)
	if f.LostReplies > 0 {
		f.LostReplies--
		return nil, fmt.Errorf("log: %w", roost.Unavailable)
	}
	reply := &wire.SubmitReply{RepeatedKey: repeated}
	for i := range req.GetJobs() {
		reply.Ids = append(reply.Ids, fmt.Sprintf("%d.pool", 70+i))
	}
	return reply, nil
}

func (f *FakeSchedd) matchingJobs(sel *wire.Selection, tasks bool) ([]*wire.JobStatus, error) {
	list := f.Jobs
	if tasks {
		list = f.Tasks
	}
	var found []*wire.JobStatus
	for _, text := range sel.GetSelectors() {
		text, _, _ := strings.Cut(text, ".")
		n := len(found)
		for _, s := range list {
			seq, _, _ := strings.Cut(s.GetId(), ".")
			whole, _, _ := strings.Cut(seq, "[")
			if text == "all" || text == "last" && s == list[0] || text == seq || tasks && text == whole ||
				text == "@"+s.GetName() {
				found = append(found, s)
			}
		}
		if n == len(found) {
			return nil, fmt.Errorf("%s: %w", text, roost.NotFound)
		}
	}
	if len(sel.GetSelectors()) == 0 {
		found = slices.Clone(list)
	}
	if len(sel.GetStates()) > 0 {
		found = slices.DeleteFunc(found, func(s *wire.JobStatus) bool {
			return !slices.Contains(sel.GetStates(), document.StateOf(s))
		})
	}
	return found, nil
}

// Query sends the jobs or tasks that a query lists.
func (f *FakeSchedd) Query(req *wire.QueryRequest, to grpc.ServerStreamingServer[wire.JobStatus]) error {
	if words := req.GetSelection().GetSelectors(); req.GetTable() && len(words) > 0 {
		return f.tableRows(req, words, to)
	}
	found, err := f.rows(req)
	for _, s := range found {
		if err := to.Send(s); err != nil {
			return err
		}
	}
	return err
}

// tableRows sends the rows of each word, or why there is none.
func (f *FakeSchedd) tableRows(req *wire.QueryRequest, words []string,
	to grpc.ServerStreamingServer[wire.JobStatus]) error {
	for _, word := range words {
		one := proto.CloneOf(req)
		one.Selection.Selectors = []string{word}
		found, err := f.rows(one)
		if err != nil {
			found = []*wire.JobStatus{{Refused: &wire.Refused{Selector: word, Kind: uint32(roost.NotFound),
				Text: err.Error()}}}
		}
		for _, s := range found {
			if err := to.Send(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows are the jobs that a query lists.
func (f *FakeSchedd) rows(req *wire.QueryRequest) ([]*wire.JobStatus, error) {
	if f.NoJobs {
		return nil, nil
	}
	found, err := f.matchingJobs(req.GetSelection(), req.GetTasks())
	return slices.DeleteFunc(found, func(s *wire.JobStatus) bool {
		return !req.GetHistory() && document.IsFinal(s) || req.GetSelection().GetMine() && s.GetOwner() != "ann"
	}), err
}

// QueryPool sends them too, and the schedds that are silent.
func (f *FakeSchedd) QueryPool(req *wire.PoolQuery, to grpc.ServerStreamingServer[wire.PoolRow]) error {
	if req.GetQuery().GetTable() {
		return f.table(req.GetQuery(), to)
	}
	found, err := f.rows(req.GetQuery())
	for _, s := range found {
		if err := to.Send(&wire.PoolRow{Of: &wire.PoolRow_Status{Status: s}}); err != nil {
			return err
		}
	}
	for _, m := range f.Silent {
		if err := to.Send(&wire.PoolRow{Of: &wire.PoolRow_Silent{Silent: m}}); err != nil {
			return err
		}
	}
	return err
}

// table answers as a schedd does that sends rows as it finds them: the oldest first,
// selectors one by one.
func (f *FakeSchedd) table(req *wire.QueryRequest, to grpc.ServerStreamingServer[wire.PoolRow]) error {
	var batch [][]byte
	add := func(s *wire.JobStatus) {
		text, _ := proto.Marshal(s)
		batch = append(batch, text)
	}
	words := req.GetSelection().GetSelectors()
	for _, word := range words {
		one := proto.CloneOf(req)
		one.Selection = &wire.Selection{Selectors: []string{word}}
		one.Tasks = one.Tasks || strings.Contains(word, "[")
		one.History = true
		found, err := f.rows(one)
		if len(found) == 1 && document.IsFinal(found[0]) && !req.GetHistory() && !one.Tasks {
			found, err = nil, roost.Finished
		}
		if len(found) == 0 && len(f.Silent) == 0 {
			if err == nil {
				err = roost.NotFound
			}
			add(&wire.JobStatus{Refused: &wire.Refused{Selector: word, Kind: uint32(rpc.KindOf(err))}})
		}
		for _, s := range found {
			add(s)
		}
	}
	if len(words) == 0 {
		found, _ := f.rows(req)
		slices.Reverse(found)
		for _, s := range found {
			if document.IsFinal(s) || !req.GetEnded() {
				add(s)
			}
		}
	}
	err := to.Send(&wire.PoolRow{Of: &wire.PoolRow_Batch{Batch: &wire.JobBatch{Jobs: batch}}})
	for _, m := range f.Silent {
		if err == nil {
			err = to.Send(&wire.PoolRow{Of: &wire.PoolRow_Silent{Silent: m}})
		}
	}
	return err
}

// Act records the request; jobs that have ended refuse it.
func (f *FakeSchedd) Act(_ context.Context, req *wire.ActRequest) (*wire.ActReply, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Acted = append(f.Acted, req)
	if req.GetVerb() == wire.ActRequest_REMOVE && f.Removed != nil {
		close(f.Removed)
		f.Removed = nil
	}
	found, err := f.matchingJobs(req.GetSelection(), frame.NamesOnlyTasks(req.GetSelection().GetSelectors()))
	if err != nil {
		return nil, err
	}
	reply := &wire.ActReply{}
	for _, s := range found {
		r := &wire.ActReply_Result{Id: s.GetId(), Tasks: max(s.GetTasks(), 1)}
		if document.IsFinal(s) {
			r.Tasks, r.Error, r.Kind = 0, s.GetId()+": already finished", uint32(roost.Finished)
		}
		reply.Results = append(reply.Results, r)
	}
	return reply, nil
}

// Watch calls WatchFunc.
func (f *FakeSchedd) Watch(_ *wire.WatchRequest, to grpc.ServerStreamingServer[wire.WatchEvent]) error {
	return f.WatchFunc(to)
}

// Logs calls LogsFunc.
func (f *FakeSchedd) Logs(req *wire.LogsRequest, to grpc.ServerStreamingServer[wire.LogChunk]) error {
	return f.LogsFunc(req, to)
}

// Why sends the explanation, whatever the job.
func (f *FakeSchedd) Why(context.Context, *wire.WhyRequest) (*wire.WhyReply, error) {
	return f.Explanation, nil
}

// Events sends all events, whatever the job.
func (f *FakeSchedd) Events(_ *wire.EventsRequest, to grpc.ServerStreamingServer[wire.JobEvent]) error {
	for _, e := range f.JobEvents {
		if err := to.Send(e); err != nil {
			return err
		}
	}
	return nil
}

// Ads sends the ads of the machines, whatever the query.
func (f *FakeSchedd) Ads(_ *wire.AdQuery, to grpc.ServerStreamingServer[wire.AdText]) error {
	for _, ad := range f.Machines {
		if err := to.Send(&wire.AdText{Ad: ad}); err != nil {
			return err
		}
	}
	return nil
}

// Health answers for a schedd named pool that has run for 90 seconds and reaches no
// negotiator.
func (f *FakeSchedd) Health(context.Context, *wire.HealthRequest) (*wire.HealthReply, error) {
	return &wire.HealthReply{Name: "pool", Version: roost.Version, Started: Noon.UnixNano() - 90e9,
		CollectorOk: true, Collector: "unix:/c",
		Negotiator: "no negotiator answers at unix:/n", QueuedTasks: 3, RunningTasks: 2, Dialect: "pbs",
		KeepCompleted: int64(365 * 24 * time.Hour)}, nil
}

// Cell answers from a ledger of its own, to which every command comes from root.
func (f *FakeSchedd) Cell(_ context.Context, req *wire.CellRequest) (*wire.CellReply, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Ledger == nil {
		f.Ledger = ledger.New()
		f.Ledger.Apply(&ledger.LogEntry{At: Noon.UnixNano(), Lead: "fake"})
	}
	epoch, _ := f.Ledger.Epoch()
	if req.GetVerb() != "show" && f.DeniesChanges {
		return nil, fmt.Errorf("queue: %w: ann@pool lacks the capability \"queues\"", roost.PermissionDenied)
	}
	if req.GetVerb() != "show" {
		c := ledger.AdminCommand{
			Who: "root@pool", Trusted: true, Verb: ledger.CommandVerb(req.GetVerb()),
			Kind: ledger.ObjectKind(req.GetKind()), Name: req.GetName(), Object: req.GetObject(),
			Whole: req.GetWhole(), Fresh: req.GetFresh(), Unsure: req.GetUnsure(), Basis: req.GetBasis(),
		}
		f.Ledger.Apply(&ledger.LogEntry{At: Noon.UnixNano(), Epoch: epoch, Commands: f.ConcurrentEvents})
		f.ConcurrentEvents = nil
		return &wire.CellReply{}, f.Ledger.Apply(&ledger.LogEntry{At: Noon.UnixNano(), Epoch: epoch,
			Commands: []ledger.AdminCommand{c}}).Commands[0]
	}
	var answer any = f.Ledger.Objects(ledger.ObjectKind(req.GetKind()))
	switch req.GetKind() {
	case "shares":
		ceiling := 64.0
		answer = ledger.ShareReport{Cores: 100, FreeCores: 20, HalfLife: 86400,
			Submitters: []ledger.SubmitterUsage{
				{Name: "carl", User: "carl", EffectivePriority: 500, RealPriority: 0.5, Factor: 1000, CoreHours: 24,
					PoolShare: 0.952, CouldGetCores: 20},
				{Name: "sci.bob", User: "bob", Group: "sci", EffectivePriority: 10000, RealPriority: 10, Factor: 1000,
					Cores: 20, CoreHours: 480.5, PoolShare: 0.75, CouldGetCores: 10, Ceiling: &ceiling},
				{Name: "ann", User: "ann", EffectivePriority: 3e13, RealPriority: 30, Factor: 1e12, Cores: 60.25,
					CoreHours: 1440, PoolShare: 0.25, CouldGetCores: 20, IsWaiting: true},
			}}
	case "capabilities":
		answer = ledger.Capabilities()
	case "settings":
		answer = []ledger.CellSetting{
			{Name: "backfill", Value: f.Ledger.SettingText(ledger.SettingBackfill), Default: "easy", Form: "choice",
				Choices: []string{"off", "easy"}, Description: "Whether small jobs may start before large ones",
				SetBy: "root@pool"},
			{Name: "half_life", Value: "1d", Default: "1d", Form: "length of time",
				Description: "How long it takes a priority to halve"},
		}
	}
	text, err := json.Marshal(answer)
	return &wire.CellReply{Document: text, Digest: f.Ledger.Digest(ledger.ObjectKind(req.GetKind()))}, err
}

// CheckpointCell sends a checkpoint in small pieces.
func (f *FakeSchedd) CheckpointCell(_ *wire.CheckpointCellRequest,
	to grpc.ServerStreamingServer[wire.CheckpointPiece]) error {
	for rest := f.CellCheckpoint; len(rest) > 0; {
		n := min(100, len(rest))
		if err := to.Send(&wire.CheckpointPiece{Data: rest[:n]}); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}
