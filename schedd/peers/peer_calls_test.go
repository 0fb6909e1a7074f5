package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// fakeQueueLeader acts for the queue of the cell at an address.
type fakeQueueLeader struct {
	wire.UnimplementedNeighbourServer
	address string
	asked   chan string // the keys of submissions
	silent  bool        // it answers nothing
}

func (f *fakeQueueLeader) Submit(ctx context.Context, req *wire.NeighbourSubmit) (*wire.SubmitReply, error) {
	f.asked <- req.GetRequest().GetKey()
	if f.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &wire.SubmitReply{Ids: []string{"1.physics"}}, nil
}

func (f *fakeQueueLeader) Act(ctx context.Context, req *wire.NeighbourAct) (*wire.ActReply, error) {
	f.asked <- fmt.Sprint(req.GetAct().GetAgain())
	if f.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &wire.ActReply{Results: []*wire.ActReply_Result{{Id: "1.physics"}}}, nil
}

func startFakeLeader(t *testing.T, silent bool) *fakeQueueLeader {
	t.Helper()
	f := &fakeQueueLeader{address: "unix:" + filepath.Join(t.TempDir(), "s"), asked: make(chan string, 100),
		silent: silent}
	l, err := rpc.Listen(f.address, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s := rpc.NewServer(nil, peer.MethodAccess())
	wire.RegisterNeighbourServer(s, f)
	go s.Serve(l)
	t.Cleanup(s.Stop)
	return f
}

// lead has the collectors say that a leader acts for the queue.
func (f *fakeQueueLeader) lead(n *Peers) { f.leadAs(n, "physics") }

// leadAs has the collectors say that the schedd of a name is at its address.
func (f *fakeQueueLeader) leadAs(n *Peers, name string) {
	ad := classad.New()
	ad.SetString(roost.AttrMyAddress, f.address)
	n.OnAdChanged(time.Now(), []adclient.AdChange{{Name: name, Ad: ad.String()}})
}

// TestSubmissionOutlivesLeader checks that a submission under way is passed on to the
// next leader of the queue. Only one with a key is: another would make two jobs.
func TestSubmissionOutlivesLeader(t *testing.T) {
	for _, key := range []string{"key", ""} {
		n := New("submit", nil, slog.New(slog.DiscardHandler))
		n.CellQueue = "physics"
		before, after := startFakeLeader(t, true), startFakeLeader(t, false)
		before.lead(n)
		type answer struct {
			reply *wire.SubmitReply
			err   error
		}
		answered := make(chan answer, 1)
		go func() {
			reply, err := n.SubmitTo(t.Context(), "physics", &wire.NeighbourSubmit{
				Request: &wire.SubmitRequest{Key: key}})
			answered <- answer{reply, err}
		}()
		if got := <-before.asked; got != key {
			t.Errorf("the leader was asked with the key %q, want %q", got, key)
		}
		after.lead(n)
		switch got := <-answered; {
		case key == "" && (!errors.Is(got.err, roost.Unavailable) || len(after.asked) > 0):
			t.Errorf("without a key: %v, %v, and the next leader was asked %d times", got.reply, got.err,
				len(after.asked))
		case key != "" && (got.err != nil || !slices.Equal(got.reply.GetIds(), []string{"1.physics"})):
			t.Errorf("with a key: %v, %v", got.reply, got.err)
		}
	}
}

// TestSubmissionWithoutLeader checks that a submission is refused after a while if nobody
// leads the queue. The caller may try again.
func TestSubmissionWithoutLeader(t *testing.T) {
	n := New("submit", nil, slog.New(slog.DiscardHandler))
	n.CellQueue = "physics"
	(&fakeQueueLeader{address: "unix:" + filepath.Join(t.TempDir(), "none")}).lead(n)
	_, err := n.SubmitTo(t.Context(), "physics", &wire.NeighbourSubmit{Request: &wire.SubmitRequest{Key: "key"}})
	if !errors.Is(err, roost.Unavailable) {
		t.Errorf("got %v", err)
	}
}

// TestActOutlivesLeader checks that an act waits for the next leader of the queue, longer
// than a list does. The leader hears that it may have been done. An act upon the jobs of
// a node fails as soon as before.
func TestActOutlivesLeader(t *testing.T) {
	for _, name := range []string{"physics", "n7"} {
		n := New("submit", nil, slog.New(slog.DiscardHandler))
		n.CellQueue = "physics"
		before, after := startFakeLeader(t, true), startFakeLeader(t, false)
		before.leadAs(n, name)
		answered := make(chan *wire.ActReply, 1)
		go func() {
			answered <- n.ActOnPeer(t.Context(), name, &wire.ActRequest{
				Selection: &wire.Selection{Selectors: []string{"1." + name}}}, queue.CallerIdentity{})
		}()
		if again := <-before.asked; again != "false" {
			t.Errorf("%s: the first leader was told again: %s", name, again)
		}
		if name == "n7" {
			if r := (<-answered).GetResults(); len(r) != 1 || r[0].GetKind() != uint32(rpc.KindOf(roost.Unavailable)) {
				t.Errorf("of a silent node: %v", r)
			}
			continue
		}
		if again := <-before.asked; again != "true" { // after peerTimeout
			t.Errorf("the leader was told again: %s", again)
		}
		after.lead(n)
		if r := (<-answered).GetResults(); len(r) != 1 || r[0].GetError() != "" || <-after.asked != "true" {
			t.Errorf("of the next leader: %v", r)
		}
	}
}
