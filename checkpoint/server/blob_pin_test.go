package server

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	blobstore "github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/wire"
)

// TestPinBlobs: what the jobs of a submit node use stays, whatever other nodes and the
// users say. What no job uses goes when there is much.
func TestPinBlobs(t *testing.T) {
	p := newPool(t, 0)
	p.blobs, _ = openBlobs(t, blobstore.Options{})
	var digests []string
	for i := range byte(3) {
		m, err := p.blobs.Add(t.Context(), bytes.NewReader(bytes.Repeat([]byte{i}, 1000)), "uid 7 of n1")
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, string(m.Digest()))
	}
	n1, n2, machine := p.node("n1", peer.Schedd), p.node("n2", peer.Schedd), p.node("m1", peer.Startd)
	absent := "sha256:" + strings.Repeat("0a", 32)
	reply, err := n1.PinBlobs(t.Context(), &wire.BlobPins{Digests: []string{digests[0], absent}})
	if err != nil || !slices.Equal(reply.GetDigests(), []string{absent}) {
		t.Fatalf("n1 pins: %v, %v", reply, err)
	}
	if _, err := n2.PinBlobs(t.Context(), &wire.BlobPins{}); err != nil {
		t.Fatal(err)
	}
	if _, err := n1.RemoveBlob(t.Context(), &wire.BlobRequest{Digest: digests[0], Uid: 7}); err != nil {
		t.Fatal(err)
	}
	refused := func(c wire.CheckpointServerClient, pins *wire.BlobPins, want error) {
		if _, err := c.PinBlobs(t.Context(), pins); !errors.Is(rpc.FromStatus(err), want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	refused(machine, &wire.BlobPins{}, roost.PermissionDenied)
	refused(n2, &wire.BlobPins{CellQueue: true}, roost.PermissionDenied)
	member := p.node("n1", peer.Schedd, peer.CellQueue)
	for _, pins := range [][]string{{digests[0]}, {digests[2]}, {}} { // the node's own pins stay
		if _, err := member.PinBlobs(t.Context(), &wire.BlobPins{CellQueue: true, Digests: pins}); err != nil {
			t.Fatal(err)
		}
	}
	refused(n2, &wire.BlobPins{Digests: make([]string, maxBlobPins+1)}, roost.Exhausted)
	refused(n2, &wire.BlobPins{Digests: []string{"blue"}}, roost.Invalid)
	if removed, err := p.collectBlobs(1, time.Now()); err != nil || len(removed) != 0 {
		t.Errorf("used just now: %v, %v", removed, err)
	}
	removed, err := p.collectBlobs(1, time.Now().Add(2*spareAfter))
	if err != nil || len(removed) != 2 || slices.Contains(removed, blobstore.Digest(digests[0])) {
		t.Errorf("removed %v, %v", removed, err)
	}
	if removed, err := p.collectBlobs(1, time.Now().Add(2*retention)); err != nil || len(removed) != 1 {
		t.Errorf("after its submit node is gone: %v, %v", removed, err)
	}
	if m := p.metricsSnapshot(); m.CollectedBlobs != 3 || m.CollectedBytes != 3000 || m.Pins != 0 {
		t.Errorf("counted: %+v", m)
	}
}
