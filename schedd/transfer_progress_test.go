package schedd

import (
	"bytes"
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestTransferProgress checks that queries and watches tell how far an image on its way
// is. Once the image is stored they tell nothing of it.
func TestTransferProgress(t *testing.T) {
	p, image := newPool(t), bytes.Repeat([]byte("state"), 100_000)
	p.startd.imageHalfway = make(chan struct{})
	id, a := p.run("")
	watch, err := p.client.Watch(p.ctx(), &wire.WatchRequest{Selection: &wire.Selection{Selectors: []string{id}}})
	if err != nil {
		t.Fatal(err)
	}
	p.startd.images <- image
	p.startd.reportCheckpoint(a.GetAttempt(), 1, len(image), "periodic")
	var m *wire.FileTransfer
	for m.GetBytes() < int64(len(image)/2) { // each second a watch is told
		e, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if list := e.GetStatus().GetTransfers(); len(list) > 0 {
			m = list[0]
		}
	}
	if m.GetKind() != "checkpoint" || m.GetBytes() != int64(len(image)/2) || m.GetTotal() != int64(len(image)) ||
		m.GetElapsed() <= 0 {
		t.Errorf("the watch says %v", m)
	}
	rows := p.query(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}})
	if len(rows) != 1 || len(rows[0].GetTransfers()) != 1 {
		t.Fatalf("the query says %v", rows)
	}
	close(p.startd.imageHalfway)
	receiveNext(t, p.startd.imageResults, "a word on the image")
	rows = p.query(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}})
	if len(rows) != 1 || len(rows[0].GetTransfers()) != 0 {
		t.Errorf("when the image is stored the query says %v", rows)
	}
}
