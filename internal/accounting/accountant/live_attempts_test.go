package accountant

import (
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/codec"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Running lists a job with a live attempt, and one that waits if that is wanted.
func (f *fakeFeed) Running(req *wire.FeedRunning, stream grpc.ServerStreamingServer[wire.FeedBatch]) error {
	if err := stream.Send(f.greeting()); err != nil {
		return err
	}
	var b wire.FeedBatch
	add := func(seq uint64, attempt *accounting.AttemptEntry) {
		key := accounting.JobKey{Month: accounting.MonthOf(0), Seq: seq}
		attempt.JobKey = key
		b.Entries = append(b.Entries, codec.AppendEntry(nil, &accounting.FeedEntry{
			Job: &accounting.JobEntry{JobKey: key, Owner: "ann"}}),
			codec.AppendEntry(nil, &accounting.FeedEntry{Attempt: attempt}))
	}
	add(1, &accounting.AttemptEntry{AttemptKey: accounting.AttemptKey{Attempt: 3}, Node: "n1", Started: 7})
	if req.GetWaiting() {
		add(2, &accounting.AttemptEntry{})
	}
	return stream.Send(&b)
}

// TestLiveAttempts asks two schedds for what runs. What is missing of one that is away is
// said.
func TestLiveAttempts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.NewServer(nil, peer.MethodAccess())
	wire.RegisterFeedServer(server, &fakeFeed{host: "here"})
	go server.Serve(l)
	defer server.Stop()
	s := scheddSet{log: slog.New(slog.DiscardHandler), all: map[string]*runningFollower{
		"here": {follower: follower{address: "unix:" + path}},
		"away": {follower: follower{address: "unix:" + path + ".gone"}},
	}}
	c := liveCache{list: s.liveAttempts}
	for waiting, want := range map[bool]int{false: 1, true: 2} {
		got := c.get(waiting)
		if len(got.Records) != want || len(got.Missing) != 1 || !strings.Contains(got.Missing[0], "away") {
			t.Fatalf("waiting %v: got %d records, %q", waiting, len(got.Records), got.Missing)
		}
		a := got.Records[0]
		if a.Job.Owner != "ann" || a.Job.Host != "here" || a.Attempt != 3 || a.Started != 7 || a.Source != testSource {
			t.Errorf("got %+v of %+v", a.AttemptEntry, a.Job)
		}
	}
	all, err := s.runningAttempts(t.Context())
	if len(all) != 1 || all[0].Owner != "ann" || err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("got %+v, %v", all, err)
	}
}

// TestLiveCache asks a hundred times at once, and again later. Schedds are asked once for
// each moment.
func TestLiveCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		c := liveCache{list: func(context.Context, *wire.FeedRunning, time.Duration) ([]accounting.AttemptRecord,
			[]*liveError) {
			time.Sleep(time.Second)
			lists++
			return make([]accounting.AttemptRecord, lists), nil
		}}
		for round := 1; round <= 3; round++ {
			var calls sync.WaitGroup
			for range 100 {
				calls.Go(func() {
					if got := c.get(false); len(got.Records) != round {
						t.Errorf("got listing %d, want %d", len(got.Records), round)
					}
				})
			}
			calls.Wait()
			time.Sleep(liveAge / 2)
			if got := c.get(false); len(got.Records) != round {
				t.Errorf("got listing %d after a moment, want %d", len(got.Records), round)
			}
			time.Sleep(liveAge)
		}
	})
}
