package chunktracker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// MachineID names a machine of the pool. The server has the zero MachineID.
type MachineID struct {
	Node string // in its certificate
	Name string // of its startd
}

// Options are the bounds of a tracker. DefaultOptions has those of a pool.
type Options struct {
	MaxUploads     int           // machines that a machine serves at a time
	MaxSeedUploads int           // machines that the server serves at a time, by plans
	MaxSeedCopies  int           // of a chunk that the server sends while machines have it
	MaxStreams     int           // sources of one machine at a time
	MaxBatch       int           // chunks of one source
	LeaseTime      time.Duration // after which a source without a result is free again
	SeedLeaseTime  time.Duration // likewise for the server
	DamageTime     time.Duration // for which a report of wrong bytes counts
	SlowTime       time.Duration // for which a report of a slow source counts
	MinReporters   int           // nodes whose reports bar a source for all
	ForgetTime     time.Duration // after which a machine that is silent is forgotten
	MinWait        time.Duration // of a machine for which there is no source
	MaxBlobs       int           // more are refused until others are forgotten
	MaxMachines    int           // likewise
	MaxOfNode      int           // machines of one node
	MaxSetBytes    int64         // memory for what machines have of blobs
	Seed           uint64        // of the random choices
}

// DefaultOptions returns the options of a pool.
func DefaultOptions() Options {
	return Options{
		MaxUploads: 4, MaxSeedUploads: 8, MaxSeedCopies: 4, MaxStreams: 4, MaxBatch: 4,
		LeaseTime: time.Minute, SeedLeaseTime: 10 * time.Second, DamageTime: 10 * time.Minute,
		SlowTime: time.Minute, MinReporters: 3,
		ForgetTime: 15 * time.Minute, MinWait: 50 * time.Millisecond,
		MaxBlobs: 1024, MaxMachines: 1 << 16, MaxOfNode: 16, MaxSetBytes: 256 << 20, Seed: 1,
	}
}

// Request is what a machine states about itself, and asks for.
type Request struct {
	Machine MachineID
	Address string // where its chunks are fetched; empty: it serves none
	Rack    string
	Digest  string
	Chunks  int      // of the blob
	Have    ChunkSet // of Chunks
	Streams int      // how many more sources it can use
	Results []Result // of sources that have ended
}

// Outcome is how a source did.
type Outcome uint8

// The outcomes.
const (
	Arrived   Outcome = iota + 1
	Damaged           // other bytes than those of the digest
	Slow              // nothing came in time, or the source was not reached
	Busy              // it serves as many as it may
	Missing           // it does not have the chunk
	Abandoned         // the machine wants it no more
)

// Result says how a source of an earlier plan did.
type Result struct {
	Machine MachineID
	Outcome Outcome
}

// Source is a machine, and the chunks that are fetched from it, in this order.
type Source struct {
	Machine MachineID
	Address string
	Chunks  []int
}

// Plan answers a request.
type Plan struct {
	Sources []Source
	Wait    time.Duration // until the machine asks again, if no source ends before
}

// Tracker has the counts of a pool. It is not safe for concurrent use.
type Tracker struct {
	options  Options
	random   randomSource
	blobs    map[string]*trackedBlob
	machines map[MachineID]*machine
	ofNode   map[string]int // machines
	seed     machine
	// of machines and of the server, in the order of their ends
	leases, seedLeases []*lease
	swept              time.Duration
	setBytes           int64 // of all blobs and members
}

// machine is one machine of the pool.
type machine struct {
	id            MachineID
	address, rack string
	heard         time.Duration // when it last called
	uploads       int           // leases of which it is the source
	reports       []report
	barredUntil   time.Duration
	members       map[*trackedBlob]*member
}

// New returns a tracker that knows no machine.
func New(o Options) *Tracker {
	return &Tracker{options: o, random: randomSource{o.Seed}, blobs: map[string]*trackedBlob{},
		machines: map[MachineID]*machine{}, ofNode: map[string]int{}}
}

// Plan notes what a machine has, and returns from where it fetches more. now is the time
// of a monotonic clock. It is roost.Exhausted when the tracker has no room for the
// machine, which then fetches from the server.
func (t *Tracker) Plan(now time.Duration, req Request) (Plan, error) {
	t.expire(now)
	from, err := t.touch(now, req.Machine, req.Address, req.Rack)
	if err != nil {
		return Plan{}, err
	}
	b, err := t.blob(req.Digest, req.Chunks)
	if err != nil {
		return Plan{}, err
	}
	b.used = now
	m, err := t.member(b, from)
	if err != nil {
		return Plan{}, err
	}
	for _, r := range req.Results {
		t.endSource(now, m, r)
	}
	b.setHave(m, req.Have)
	b.setServes(m, from.address != "" && now >= from.barredUntil)
	wait := time.Duration(len(b.members)) * t.options.MinWait / waitFraction
	plan := Plan{Wait: min(max(t.options.MinWait, wait), maxWait)}
	if streams := min(req.Streams, t.options.MaxStreams-len(m.leases)); streams > 0 {
		plan.Sources = t.choose(now, m, streams)
	}
	return plan, nil
}

// waitFraction is how many machines may wait for a source before each asks less often.
// Beyond maxWait the waiting itself delays the last machines of a large pool.
const (
	waitFraction = 200
	maxWait      = 500 * time.Millisecond
)

// Whole notes which blobs a machine has whole, and that it has no others but those that
// it fetches. chunks returns the number of chunks of a blob, 0 if it is unknown.
func (t *Tracker) Whole(now time.Duration, id MachineID, address, rack string, digests []string,
	chunks func(digest string) int) error {
	t.expire(now)
	from, err := t.touch(now, id, address, rack)
	if err != nil {
		return err
	}
	listed := make(map[*trackedBlob]bool, len(digests))
	for _, digest := range digests {
		n := chunks(digest)
		if n == 0 {
			continue
		}
		b, err := t.blob(digest, n)
		if err != nil {
			return err
		}
		m, err := t.member(b, from)
		if err != nil {
			return err
		}
		all := NewChunkSet(n)
		all.Fill(n)
		b.setHave(m, all)
		b.setServes(m, from.address != "" && now >= from.barredUntil)
		listed[b] = true
	}
	for b, m := range from.members {
		if !listed[b] && m.have.Len() == b.chunks {
			t.removeMember(m)
		}
	}
	return nil
}

// touch returns a machine that has called.
func (t *Tracker) touch(now time.Duration, id MachineID, address, rack string) (*machine, error) {
	m := t.machines[id]
	if m == nil {
		if len(t.machines) >= t.options.MaxMachines || t.ofNode[id.Node] >= t.options.MaxOfNode {
			return nil, fmt.Errorf("plan of chunks: %w: the server knows %d machines, %d of them of node %s, and no "+
				"more have room", roost.Exhausted, len(t.machines), t.ofNode[id.Node], id.Node)
		}
		m = &machine{id: id, members: map[*trackedBlob]*member{}}
		t.machines[id] = m
		t.ofNode[id.Node]++
	}
	if m.rack != rack {
		for _, at := range m.members {
			t.removeMember(at)
		}
	}
	m.address, m.rack, m.heard = address, rack, now
	return m, nil
}

// sweepInterval is how often silent machines are searched.
const sweepInterval = 30 * time.Second

// expire ends old leases, and forgets machines that are silent.
func (t *Tracker) expire(now time.Duration) {
	for _, list := range []*[]*lease{&t.leases, &t.seedLeases} {
		for len(*list) > 0 && ((*list)[0].ended || (*list)[0].expires <= now) {
			t.endLease((*list)[0])
			*list = (*list)[1:]
		}
	}
	if now < t.swept+sweepInterval {
		return
	}
	t.swept = now
	var silent []*machine
	for _, m := range t.machines {
		if now-m.heard >= t.options.ForgetTime {
			silent = append(silent, m)
		}
	}
	slices.SortFunc(silent, func(a, b *machine) int {
		return cmp.Or(strings.Compare(a.id.Node, b.id.Node), strings.Compare(a.id.Name, b.id.Name))
	})
	for _, m := range silent {
		t.forget(m)
	}
	for digest, b := range t.blobs {
		if len(b.members) == 0 && now-b.used >= t.options.ForgetTime {
			delete(t.blobs, digest)
			t.setBytes -= b.size()
		}
	}
}

// forget removes a machine.
func (t *Tracker) forget(m *machine) {
	for _, at := range m.members {
		t.removeMember(at)
	}
	delete(t.machines, m.id)
	if t.ofNode[m.id.Node]--; t.ofNode[m.id.Node] == 0 {
		delete(t.ofNode, m.id.Node)
	}
}
