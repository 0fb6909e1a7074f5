package transfer

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestFirstSend sends the files of one task of an array while the others wait. Another
// takes its place when it fails, and all go on afterwards.
func TestFirstSend(t *testing.T) {
	c := newNodeCaches()
	job := roost.JobID{Host: "submit", Seq: 3}
	first, err := c.beginFirst(t.Context(), "n1", job)
	if first == nil || err != nil {
		t.Fatal(first, err)
	}
	if other, err := c.beginFirst(t.Context(), "n2", job); other == nil || err != nil {
		t.Errorf("another machine waits: %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.beginFirst(canceled, "n1", job); !errors.Is(err, context.Canceled) {
		t.Errorf("the second got %v, and had to wait", err)
	}
	const waiting = 8
	turns := make(chan *firstSend, waiting)
	for range waiting {
		go func() {
			s, _ := c.beginFirst(t.Context(), "n1", job)
			turns <- s
		}()
	}
	first.end(false)
	first.end(true) // the first end counts
	second := <-turns
	if second == nil {
		t.Fatal("all go on, though the machine has no files")
	}
	select {
	case <-turns:
		t.Fatal("two send at once")
	default:
	}
	second.end(true)
	for range waiting - 1 {
		if s := <-turns; s != nil {
			t.Error("one sends first, though the machine has the files")
		}
	}
}

// TestCacheView checks when a machine caches a file. One of an array is cached at once,
// another when it is sent a second time.
func TestCacheView(t *testing.T) {
	c := newNodeCaches()
	single := c.view("n1", 7, false)
	if sum, cacheable := single.Find("a"); sum != nil || cacheable {
		t.Errorf("a file of a single job: %x, %v", sum, cacheable)
	}
	single.Sent("a", []byte("sum"))
	single.commit()
	again := c.view("n1", 7, false)
	if sum, cacheable := again.Find("a"); sum != nil || !cacheable {
		t.Errorf("a file that is sent again: %x, %v", sum, cacheable)
	}
	again.Sent("a", []byte("sum"))
	if sum, _ := c.view("n1", 7, false).Find("a"); sum != nil {
		t.Error("a file is known before the machine has it")
	}
	again.commit()
	if sum, _ := c.view("n1", 7, false).Find("a"); string(sum) != "sum" {
		t.Errorf("a file that the machine has: %x", sum)
	}
	for _, other := range []*inputCacheView{c.view("n2", 7, true), c.view("n1", 8, true)} {
		if sum, cacheable := other.Find("a"); sum != nil || !cacheable {
			t.Errorf("another machine or user: %x, %v", sum, cacheable)
		}
	}
	c.forget("n1")
	if sum, _ := c.view("n1", 7, true).Find("a"); sum != nil {
		t.Errorf("a file that the machine has lost: %x", sum)
	}
}

// TestRecentFiles checks the bound of what is known.
func TestRecentFiles(t *testing.T) {
	var f recentFiles
	for i := range byte(10) {
		f.add(cachedFileID{i}, []byte{i}, 3)
	}
	f.add(cachedFileID{9}, []byte{1}, 3)
	if len(f.sums) != 3 || len(f.order) != 3 || f.sums[cachedFileID{9}][0] != 1 || f.sums[cachedFileID{6}] != nil {
		t.Errorf("got %v", f.sums)
	}
}

// TestStoredPasser passes stored files on of which the machine has one.
func TestStoredPasser(t *testing.T) {
	file := func(name string, size int) []*wire.FileChunk {
		return []*wire.FileChunk{{Entry: &wire.FileEntry{Name: name, Size: int64(size)}}, {Data: make([]byte, size)},
			{Eof: true, Sha256: []byte(name)}}
	}
	stored := slices.Concat(file("known", userfiles.MinCachedBytes), file("new", userfiles.MinCachedBytes),
		file("small", 1))
	c := newNodeCaches()
	before := c.view("n1", 7, true)
	before.Sent("stored set/known", []byte("digest"))
	before.commit()
	view := c.view("n1", 7, true)
	var sent []*wire.FileChunk
	p := storedPasser{
		inputSend: inputSend{files: sandboxFiles{TaskProgram: queue.TaskProgram{StoredInput: "set"}}},
		opts:      userfiles.SendOptions{Cache: view},
		send:      func(m *wire.FileChunk) error { sent = append(sent, m); return nil },
	}
	for _, m := range stored {
		if err := p.pass(m); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if len(sent) != 7 || !sent[0].GetCached() || string(sent[0].GetSha256()) != "digest" ||
		!sent[1].GetCacheable() || sent[1].GetCached() || sent[4].GetCacheable() {
		t.Errorf("sent %d messages, first %v", len(sent), sent[0])
	}
	view.commit()
	if sum, _ := c.view("n1", 7, true).Find("stored set/new"); string(sum) != "new" {
		t.Errorf("the new file is known as %q", sum)
	}
}
