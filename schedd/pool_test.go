package schedd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
)

// The names of the small pool under test.
const (
	hostName = "submit"
	nodeName = "node"
	domain   = "everywhere"
)

// testPool is a schedd between a fake negotiator and a fake startd.
type testPool struct {
	testing.TB
	node   *config.Node
	startd *fakeStartd
	asked  *fakeNegotiator
	client wire.ScheddClient
	stop   func()
}

// newPool starts all three in a directory that other users can reach.
func newPool(t testing.TB) *testPool {
	t.Helper()
	dir, err := os.MkdirTemp("", "roost-schedd")
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	at := func(name string) string { return "unix:" + filepath.Join(dir, name+".sock") }
	p := &testPool{TB: t, startd: serveStartd(t, at("startd"))}
	p.asked = serveNegotiator(t, at("negotiator"), nodeName, at("startd"))
	p.node = &config.Node{
		Name: hostName, Dir: dir, FileSystemDomain: domain, Negotiators: []string{at("negotiator")},
		Schedd: &config.ScheddSettings{Socket: at("schedd"), SocketMode: 0o666, JobLease: time.Hour, MaxQueued: 1000,
			AllowRoot: true},
	}
	p.start()
	t.Cleanup(func() { p.stop() })
	return p
}

// start runs the schedd; stop ends it.
func (p *testPool) start() {
	p.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, p.node, nil) }()
	conn, err := rpc.Dial(p.node.Schedd.Socket, nil, peer.Schedd)
	if err != nil {
		p.Fatal(err)
	}
	p.client = wire.NewScheddClient(conn)
	p.stop = func() {
		cancel()
		conn.Close()
		if err := receiveNext(p, done, "the end of the schedd"); err != nil {
			p.Errorf("the schedd ended with: %v", err)
		}
		p.stop = func() {}
	}
	if _, err := p.client.Health(p.ctx(), &wire.HealthRequest{}, grpc.WaitForReady(true)); err != nil {
		p.Fatal(err)
	}
}

func (p *testPool) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	p.Cleanup(cancel)
	return ctx
}

func (p *testPool) submit(key string, count int, ad string) *wire.SubmitReply {
	p.Helper()
	reply, err := p.client.Submit(p.ctx(), &wire.SubmitRequest{Key: key, Jobs: []*wire.JobSpec{{
		Ad:    fmt.Sprintf("[Cmd = \"/bin/true\"; Iwd = %q; Transfer = \"never\"; %s]", p.node.Dir, ad),
		Count: uint32(count),
	}}})
	if err != nil {
		p.Fatal(err)
	}
	return reply
}

func (p *testPool) act(verb wire.ActRequest_Verb, id string) *wire.ActReply_Result {
	p.Helper()
	return p.actWith(&wire.ActRequest{Verb: verb, Selection: &wire.Selection{Selectors: []string{id}}})
}

// actWith is act where a verb takes more than the id.
func (p *testPool) actWith(req *wire.ActRequest) *wire.ActReply_Result {
	p.Helper()
	reply, err := p.client.Act(p.ctx(), req)
	if err != nil || len(reply.GetResults()) != 1 {
		p.Fatalf("%v: %v, %v", req, reply, err)
	}
	return reply.GetResults()[0]
}

// receive takes a stream to its end.
func receive[T any](stream interface{ Recv() (*T, error) }, err error) (list []*T, _ error) {
	for err == nil {
		var m *T
		if m, err = stream.Recv(); err == nil {
			list = append(list, m)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return list, rpc.FromStatus(err)
}

func (p *testPool) query(req *wire.QueryRequest) []*wire.JobStatus {
	p.Helper()
	rows, err := receive(p.client.Query(p.ctx(), req))
	if err != nil {
		p.Fatal(err)
	}
	return rows
}

// await watches a job until its counts are as wanted, as "idle 1 completed 2".
func (p *testPool) await(id, want string) *wire.JobStatus {
	p.Helper()
	stream, err := p.client.Watch(p.ctx(), &wire.WatchRequest{Selection: &wire.Selection{Selectors: []string{id}}})
	if err != nil {
		p.Fatal(err)
	}
	got := ""
	for {
		e, err := stream.Recv()
		if err != nil {
			p.Fatalf("%s: got %q, want %q: %v", id, got, want, rpc.FromStatus(err))
		}
		if got = taskCounts(e.GetStatus()); got == want {
			return e.GetStatus()
		}
	}
}

func taskCounts(s *wire.JobStatus) string {
	var parts []string
	for _, state := range []string{"blocked", "idle", "starting", "running", "suspended", "held", "completed", "failed",
		"removed"} {
		if n := s.GetCounts()[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", state, n))
		}
	}
	return strings.Join(parts, " ")
}

// recoveredQueue is the queue that a schedd would find if this one died now.
func (p *testPool) recoveredQueue() *queue.Queue {
	p.Helper()
	var err error
	for range 5 { // a copy that was taken during a write may be torn
		dir := p.TempDir()
		var b []byte
		if b, err = os.ReadFile(filepath.Join(p.node.Dir, "schedd", journal.FileName)); err != nil {
			break
		}
		if err = os.WriteFile(filepath.Join(dir, journal.FileName), b, 0o600); err != nil {
			break
		}
		if err = os.CopyFS(filepath.Join(dir, journal.LogName),
			os.DirFS(filepath.Join(p.node.Dir, "schedd", journal.LogName))); err != nil {
			break
		}
		var j *journal.Journal
		var q *queue.Queue
		if j, q, err = journal.Open(dir, hostName); err == nil {
			j.Close()
			return q
		}
	}
	p.Fatal(err)
	return nil
}
