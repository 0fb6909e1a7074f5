package transfer

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/object"
	"github.com/roost-batch/roost/internal/wire"
)

// The kinds of transfers, as users see them.
const (
	inputTransfer      = "input"
	outputTransfer     = "output"
	checkpointTransfer = "checkpoint" // an image comes from a node
	restoreTransfer    = "restore"    // an image goes to a node
)

// transferProgress counts the bytes of one try of a transfer. A nil one counts nothing.
type transferProgress struct {
	kind  string
	total int64 // bytes
	bytes atomic.Int64
	began atomic.Pointer[time.Time] // time of the first message; nil: it waits for its turn
	waits atomic.Pointer[string]    // why nothing moves now; nil: it does
}

// note takes in how many bytes a machine has moved by itself, and why it waits.
func (p *transferProgress) note(bytes int64, waits string) {
	if p == nil {
		return
	}
	if bytes > p.bytes.Load() {
		p.add(bytes - p.bytes.Load())
	}
	waits = object.ShortText(waits)
	p.waits.Store(&waits)
}

// add counts a message.
func (p *transferProgress) add(bytes int64) {
	if p == nil {
		return
	}
	if p.began.Load() == nil {
		now := time.Now()
		p.began.Store(&now)
	}
	p.bytes.Add(bytes)
}

// containerKind is the kind of a container image that its machine fetches.
const containerKind = "container image"

// containerNews is what a machine said last of the container image of an attempt.
type containerNews struct {
	bytes, total int64
	waits        string
	began, at    time.Time // of the first and the last word
}

// NoteContainer takes in how far a machine is with the container image of an attempt. It
// may be called anywhere.
func NoteContainer(t *FileTransfers, a roost.AttemptID, m *wire.ContainerProgress, now time.Time) {
	t.progress.mu.Lock()
	defer t.progress.mu.Unlock()
	known := t.progress.containers
	if known == nil {
		known = map[roost.AttemptID]containerNews{}
		t.progress.containers = known
	}
	maps.DeleteFunc(known, func(_ roost.AttemptID, n containerNews) bool { return n.isOld(now) })
	if m.GetDone() {
		delete(known, a)
		return
	}
	n, ok := known[a]
	if !ok {
		n.began = now
	}
	n.bytes, n.total, n.at = max(m.GetBytes(), 0), max(m.GetTotal(), 0), now
	n.waits = m.GetWaits()
	known[a] = n
}

// isOld reports whether a machine that fetches an image has been silent for long.
func (n *containerNews) isOld(now time.Time) bool { return now.Sub(n.at) > roost.SilentAfter }

// containerTransfer is a container image on its way as a transfer.
func (t *transferTable) containerTransfer(a roost.AttemptID, now time.Time) (list []*wire.FileTransfer) {
	if n, ok := t.containers[a]; ok && !n.isOld(now) {
		list = append(list, &wire.FileTransfer{Kind: containerKind, Bytes: n.bytes, Total: max(n.total, n.bytes),
			Elapsed: max(int64(now.Sub(n.began)), 1), Waits: n.waits})
	}
	return list
}

// beginWait adds a transfer that has moved nothing yet. It is listed when it waits for
// something.
func (t *transferTable) beginWait(a roost.AttemptID, kind string) (p *transferProgress, end func()) {
	p, end = t.begin(a, kind, 1)
	p.total = 0
	return p, end
}

// transferTable has the transfers that are under way by attempt. Each transfer counts in
// a goroutine of its own, and lists read beside it.
type transferTable struct {
	mu sync.Mutex
	of map[roost.AttemptID][]*transferProgress

	containers map[roost.AttemptID]containerNews // of attempts that wait for their images
}

// begin adds a transfer, until end is called. One that has nothing to move is not added.
func (t *transferTable) begin(a roost.AttemptID, kind string, total int64) (p *transferProgress, end func()) {
	if total <= 0 {
		return nil, func() {}
	}
	p = &transferProgress{kind: kind, total: total}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[roost.AttemptID][]*transferProgress{}
	}
	t.of[a] = append(t.of[a], p)
	return p, func() { t.end(a, p) }
}

func (t *transferTable) end(a roost.AttemptID, p *transferProgress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[a] = slices.DeleteFunc(t.of[a], func(other *transferProgress) bool { return other == p })
	if len(t.of[a]) == 0 {
		delete(t.of, a)
	}
}

// Progress returns how far the transfers of an attempt are. It may be called anywhere.
func (t *FileTransfers) Progress(a roost.AttemptID) (list []*wire.FileTransfer) {
	t.progress.mu.Lock()
	defer t.progress.mu.Unlock()
	list = t.progress.containerTransfer(a, time.Now())
	for _, p := range t.progress.of[a] {
		done, waits := p.bytes.Load(), p.waits.Load()
		if p.total == 0 && (waits == nil || *waits == "") {
			continue
		}
		m := &wire.FileTransfer{Kind: p.kind, Bytes: done, Total: max(p.total, done)}
		if began := p.began.Load(); began != nil {
			m.Elapsed = max(int64(time.Since(*began)), 1)
		}
		if waits != nil {
			m.Waits = *waits
		}
		list = append(list, m)
	}
	return list
}

// ActiveJobs calls f with the job of each attempt that has files on their way, until f
// returns false. It may be called anywhere; f must not block.
func (t *FileTransfers) ActiveJobs(f func(roost.JobID) bool) {
	t.progress.mu.Lock()
	defer t.progress.mu.Unlock()
	for a := range t.progress.of {
		if !f(a.Task.Job) {
			return
		}
	}
	now := time.Now()
	for a, n := range t.progress.containers {
		if !n.isOld(now) && !f(a.Task.Job) {
			return
		}
	}
}

// outputSize is how many bytes of an attempt's output have to be fetched.
func (c *OutputFetch) outputSize() (bytes int64) {
	for _, n := range [][2]int64{
		{c.Exited.GetStdoutSize(), int64(len(c.Exited.GetStdout()))},
		{c.Exited.GetStderrSize(), int64(len(c.Exited.GetStderr()))},
	} {
		if n[0] > n[1] { // it did not come with the message
			bytes += n[0]
		}
	}
	for _, e := range c.requestedFiles() {
		bytes += max(e.GetSize(), 0)
	}
	return bytes
}
