package collector

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	grpcpeer "google.golang.org/grpc/peer"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
)

// updateStream is a stream of updates that breaks after the last.
type updateStream struct {
	grpc.ServerStream
	ctx         context.Context
	updatesLeft []*wire.AdUpdate
}

func (s *updateStream) Context() context.Context { return s.ctx }
func (s *updateStream) Send(*wire.AdAck) error   { return nil }
func (s *updateStream) Recv() (*wire.AdUpdate, error) {
	if len(s.updatesLeft) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	m := s.updatesLeft[0]
	s.updatesLeft = s.updatesLeft[1:]
	return m, nil
}

// TestRevokedNodeLosesAds checks that the ads of a revoked node are removed when its
// stream is cut. Ads of others, and of the node after it has joined again, stay.
func TestRevokedNodeLosesAds(t *testing.T) {
	s := &grpcService{storeLoop: newStoreLoop(adstore.DefaultLimits(), testNames()),
		isRevoked: func(serial string) bool {
			return serial == "bad"
		}}
	background(t, func(ctx context.Context) error { s.storeLoop.run(ctx); return nil })
	advertise := func(node, serial string, started int64) {
		t.Helper()
		ctx, cancel := context.WithCancel(grpcpeer.NewContext(t.Context(),
			&grpcpeer.Peer{AuthInfo: peer.Peer{Name: node, Serial: serial, Certified: []peer.Role{peer.Startd}}}))
		m := &wire.AdUpdate{Type: "Machine", Name: node, Sequence: 1, Started: started, LeaseMs: 60_000,
			Ad: `[MyType = "Machine"; Name = "` + node + `"; Machine = "` + node + `"]`}
		cut := &updateStream{ctx: ctx, updatesLeft: []*wire.AdUpdate{m}}
		defer cancel()
		if err := s.Advertise(cut); err != io.ErrUnexpectedEOF {
			t.Fatalf("%s: %v", node, err)
		}
	}
	holds := func(want int, when string) {
		t.Helper()
		var got int
		if err := s.storeLoop.runInLoop(t.Context(), func() {
			got = s.storeLoop.store.Count()
		}); err != nil || got != want {
			t.Errorf("%s: %d ads, %v, want %d", when, got, err, want)
		}
	}
	advertise("a", "good", 1)
	holds(1, "a connection broke")
	advertise("b", "bad", 1)
	holds(1, "a revoked node was hung up on")
	advertise("b", "new", 2)
	advertise("b", "bad", 1)
	holds(2, "its old connection ends after it has joined anew")
}

// TestANameInOtherLettersIsFree checks names that differ only by case from the name of a
// node. A new node may use one after the other node was revoked, and not before.
func TestANameInOtherLettersIsFree(t *testing.T) {
	caught := false
	s := &grpcService{storeLoop: newStoreLoop(adstore.DefaultLimits(), testNames()),
		isRevoked: func(serial string) bool {
			return caught && serial == "first"
		}}
	background(t, func(ctx context.Context) error { s.storeLoop.run(ctx); return nil })
	advertise := func(node, serial string) error {
		p := peer.Peer{Name: node, Serial: serial, Certified: []peer.Role{peer.Startd}}
		_, err := s.applyUpdate(t.Context(), p, adstore.AdUpdate{
			Type: "Machine", Name: node, Node: node, Serial: serial, Sequence: 1, Started: 1,
			Ad: `[Name = "` + node + `"; Machine = "` + node + `"]`,
		})
		return err
	}
	if err := advertise("n1", "first"); err != nil {
		t.Fatal(err)
	}
	if err := advertise("N1", "second"); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("beside n1: %v", err)
	}
	caught = true
	if err := s.storeLoop.runInLoop(t.Context(), func() {
		_, _ = s.storeLoop.store.Update(time.Now(), adstore.AdUpdate{Type: "Machine", Name: "n1", Node: "n1",
			Serial: "first", Sequence: 1, Started: 1, Invalidate: true})
	}); err != nil {
		t.Fatal(err)
	}
	if err := advertise("N1", "second"); err != nil {
		t.Errorf("after n1 was revoked: %v", err)
	}
}
