package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	blobstore "github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/store/chunktracker"
	"github.com/roost-batch/roost/internal/wire"
)

// chunkPlanner is the tracker of the pool's blobs. It is empty when the server starts:
// machines say again what they have.
type chunkPlanner struct {
	mu      sync.Mutex
	began   time.Time
	tracker *chunktracker.Tracker
	chunks  map[blobstore.Digest]int // of blobs that machines have asked for
}

// maxPlannedBlobs bounds the blobs whose number of chunks is remembered.
const maxPlannedBlobs = 4096

func newChunkPlanner() *chunkPlanner {
	o := chunktracker.DefaultOptions()
	o.Seed = uint64(time.Now().UnixNano())
	return &chunkPlanner{began: time.Now(), tracker: chunktracker.New(o), chunks: map[blobstore.Digest]int{}}
}

// now returns the time of the tracker's clock.
func (p *chunkPlanner) now() time.Duration { return time.Since(p.began) }

// Bounds of what a machine states about itself, in bytes and blobs.
const (
	maxMachineText = 255
	maxWholeBlobs  = 256
)

// planningMachine returns who asks for a plan. A node asks for machines of its own only.
func planningMachine(ctx context.Context, req *wire.ChunkPlanRequest) (id chunktracker.MachineID, err error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return id, fmt.Errorf("plan of chunks: %w: the caller is unknown", roost.Unauthenticated)
	}
	if !p.Local && p.Name != req.GetNode() {
		return id, fmt.Errorf("plan of chunks: %w: %s may not ask for a machine of %.80q", roost.PermissionDenied,
			p.Name, req.GetNode())
	}
	for _, text := range []string{req.GetNode(), req.GetMachine(), req.GetAddress(), req.GetRack()} {
		if len(text) > maxMachineText {
			return id, fmt.Errorf("plan of chunks: %w: a name, address or rack has %d bytes, and %d are the most",
				roost.Invalid, len(text), maxMachineText)
		}
	}
	if req.GetNode() == "" || req.GetMachine() == "" {
		return id, fmt.Errorf("plan of chunks: %w: it names no machine", roost.Invalid)
	}
	if n := len(req.GetWhole()); n > maxWholeBlobs {
		return id, fmt.Errorf("plan of chunks: %w: it lists %d blobs, and %d are the most", roost.Invalid, n,
			maxWholeBlobs)
	}
	return chunktracker.MachineID{Node: req.GetNode(), Name: req.GetMachine()}, nil
}

// PlanChunks says from which machines a machine fetches chunks of a blob. What a machine
// states wrongly about itself harms no other: chunks are compared with their digests.
func (s *Service) PlanChunks(ctx context.Context, req *wire.ChunkPlanRequest) (*wire.ChunkPlan, error) {
	blobs, err := s.blobDirectory()
	if err != nil {
		return nil, err
	}
	id, err := planningMachine(ctx, req)
	if err != nil {
		return nil, err
	}
	p := s.planner
	p.mu.Lock()
	defer p.mu.Unlock()
	if req.GetListsWhole() {
		err := p.tracker.Whole(p.now(), id, req.GetAddress(), req.GetRack(), req.GetWhole(), func(digest string) int {
			n, _ := p.chunkCount(blobs, digest) // what the server does not have is not planned for
			return n
		})
		if err != nil {
			return nil, err
		}
	}
	if req.GetDigest() == "" {
		return &wire.ChunkPlan{}, nil
	}
	n, err := p.chunkCount(blobs, req.GetDigest())
	if err != nil {
		return nil, err
	}
	plan, err := p.tracker.Plan(p.now(), chunktracker.Request{
		Machine: id, Address: req.GetAddress(), Rack: req.GetRack(), Digest: req.GetDigest(), Chunks: n,
		Have: chunktracker.DecodeChunkSet(req.GetHave(), n), Streams: int(min(req.GetStreams(), maxTransfers)),
		Results: chunkResults(req.GetResults()),
	})
	if err != nil {
		return nil, err
	}
	reply := &wire.ChunkPlan{WaitMs: uint32(plan.Wait.Milliseconds())}
	for _, source := range plan.Sources {
		to := &wire.ChunkSource{Node: source.Machine.Node, Machine: source.Machine.Name, Address: source.Address}
		for _, i := range source.Chunks {
			to.Chunks = append(to.Chunks, uint32(i))
		}
		s.metrics.PlannedChunks(len(to.Chunks))
		reply.Sources = append(reply.Sources, to)
	}
	return reply, nil
}

// chunkCount returns how many chunks a blob of the server has. p.mu is held.
func (p *chunkPlanner) chunkCount(blobs *blobstore.Directory, text string) (int, error) {
	digest, err := blobstore.ParseDigest(text)
	if err != nil {
		return 0, err
	}
	if n, ok := p.chunks[digest]; ok {
		return n, nil
	}
	m, err := blobs.Manifest(digest)
	if err != nil {
		return 0, err
	}
	if len(p.chunks) >= maxPlannedBlobs {
		clear(p.chunks)
	}
	p.chunks[digest] = len(m.Chunks)
	return len(m.Chunks), nil
}

// chunkResults returns how sources did, as the tracker has it.
func chunkResults(list []*wire.ChunkResult) (results []chunktracker.Result) {
	for _, r := range list[:min(len(list), maxTransfers)] {
		results = append(results, chunktracker.Result{
			Machine: chunktracker.MachineID{Node: r.GetNode(), Name: r.GetMachine()},
			Outcome: map[wire.ChunkResult_Outcome]chunktracker.Outcome{
				wire.ChunkResult_OUTCOME_ARRIVED:   chunktracker.Arrived,
				wire.ChunkResult_OUTCOME_DAMAGED:   chunktracker.Damaged,
				wire.ChunkResult_OUTCOME_SLOW:      chunktracker.Slow,
				wire.ChunkResult_OUTCOME_BUSY:      chunktracker.Busy,
				wire.ChunkResult_OUTCOME_MISSING:   chunktracker.Missing,
				wire.ChunkResult_OUTCOME_ABANDONED: chunktracker.Abandoned,
			}[r.GetOutcome()],
		})
	}
	return results
}
