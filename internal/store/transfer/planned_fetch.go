package transfer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/store/chunktracker"
	"github.com/roost-batch/roost/internal/wire"
)

// Fetcher fetches blobs for a machine, from other machines and from the server. The
// server plans from which. Without a plan everything comes from the server.
type Fetcher struct {
	Server  wire.CheckpointServerClient
	Machine *wire.ChunkPlanRequest // node, machine, address, rack
	// Dial connects to another machine. The connection ends with done.
	Dial    func(node, address string) (c wire.StartdClient, done func(), err error)
	Counter Counter
	// StallTime is how long another machine may send nothing; 0 is 10 s
	StallTime time.Duration
}

// Bounds of a fetch by plans.
const (
	maxStreams        = 4                // sources at a time
	planTimeout       = 2 * time.Second  // for an answer of the tracker
	stallTime         = 10 * time.Second // of another machine
	chunkTimeout      = time.Minute      // for a chunk of another machine
	patience          = 20 * time.Second // without a chunk, before the server is asked whatever the plan
	maxServerFailures = 3
)

// plannedFetch is one fetch. One goroutine has it; sources run in others.
type plannedFetch struct {
	*Fetcher
	digest         store.Digest
	manifest       store.Manifest
	in             *store.Incoming
	have, coming   chunktracker.ChunkSet
	streams        int
	results        []*wire.ChunkResult
	events         chan sourceEvent
	haveBytes      int64
	progress       func(have, size int64)
	last           time.Time // when the last chunk came
	serverFailures int
	serverErr      error
	fromServer     bool // a source is the server
}

// sourceEvent is a chunk that came from a source, or the end of the source.
type sourceEvent struct {
	source  *wire.ChunkSource
	chunk   int // that came; -1 at the end
	outcome wire.ChunkResult_Outcome
	err     error
}

// Fetch gets a blob into a directory. It is as Fetch, the function.
func (f *Fetcher) Fetch(ctx context.Context, digest store.Digest, to *store.Directory,
	progress func(have, size int64)) error {
	if _, ok := to.Path(digest); ok {
		return nil
	}
	m, err := fetchManifest(ctx, f.Server, digest)
	if err != nil {
		return err
	}
	if progress == nil {
		progress = func(int64, int64) {}
	}
	progress(0, m.Size) // also if there is no room for it
	in, err := to.Receive(ctx, m, "")
	if err != nil {
		return err
	}
	defer in.Close()
	p := &plannedFetch{Fetcher: f, digest: digest, manifest: m, in: in, have: chunktracker.NewChunkSet(len(m.Chunks)),
		coming: chunktracker.NewChunkSet(len(m.Chunks)), events: make(chan sourceEvent, 4*maxStreams),
		haveBytes: m.Size, progress: progress, last: time.Now()}
	p.have.Fill(len(m.Chunks))
	for _, i := range in.Missing() {
		p.have.Remove(i)
		p.haveBytes -= int64(m.ChunkSize(i))
	}
	if err := p.run(ctx); err != nil {
		return fmt.Errorf("blob %s: %w", digest.Short(), err)
	}
	if _, err := in.Finish(); err != nil {
		return err
	}
	// Others learn that all of it is here. Without that they learn it with the next list.
	p.ask(ctx)
	return nil
}

// isWhole reports whether all chunks have come.
func (p *plannedFetch) isWhole() bool { return p.have.Len() == len(p.manifest.Chunks) }

// run fetches what is missing.
func (p *plannedFetch) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for p.streams > 0 {
			if e := <-p.events; e.chunk < 0 {
				p.streams--
			}
		}
	}()
	for !p.isWhole() {
		wait := p.plan(ctx)
		timer := time.NewTimer(wait)
		for asked := false; !asked && !p.isWhole(); {
			select {
			case e := <-p.events:
				if err := p.apply(e); err != nil {
					timer.Stop()
					return err
				}
				asked = e.chunk < 0
			case <-timer.C:
				asked = true
			case <-ctx.Done():
				timer.Stop()
				return ctx.Err()
			}
		}
		timer.Stop()
	}
	return nil
}

// plan asks for sources and starts them. It returns when to ask again.
func (p *plannedFetch) plan(ctx context.Context) (wait time.Duration) {
	const longest = 5 * time.Second
	plan, err := p.ask(ctx)
	if err == nil {
		for _, source := range plan.GetSources() {
			p.start(ctx, source)
		}
		wait = min(max(time.Duration(plan.GetWaitMs())*time.Millisecond, 10*time.Millisecond), longest)
	} else {
		wait = time.Second + rand.N(time.Second) // the tracker is silent, or has no room
	}
	if !p.fromServer && (err != nil && p.streams == 0 || time.Since(p.last) > patience) {
		p.start(ctx, &wire.ChunkSource{Chunks: p.missing(batchWithoutPlan(err))})
	}
	return wait
}

// batchWithoutPlan returns how many chunks the server is asked for without a plan. A
// server that makes no plans is asked for many.
func batchWithoutPlan(err error) int {
	switch status.Code(err) {
	case codes.Unimplemented, codes.PermissionDenied: // it is of an earlier release
		return batch
	}
	return maxStreams
}

// ask reports what is here, and asks for sources.
func (p *plannedFetch) ask(ctx context.Context) (*wire.ChunkPlan, error) {
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	free := maxStreams - p.streams
	if p.isWhole() {
		free = 0
	}
	plan, err := p.Server.PlanChunks(ctx, &wire.ChunkPlanRequest{Digest: string(p.digest), Node: p.Machine.GetNode(),
		Machine: p.Machine.GetMachine(), Address: p.Machine.GetAddress(), Rack: p.Machine.GetRack(),
		Have: p.have.Encode(len(p.manifest.Chunks)), Streams: uint32(free), Results: p.results})
	if err == nil {
		p.results = nil
	}
	return plan, err
}

// missing returns at most n chunks that neither are here nor come.
func (p *plannedFetch) missing(n int) (chunks []uint32) {
	for i := range p.manifest.Chunks {
		if !p.have.Has(i) && !p.coming.Has(i) && len(chunks) < n {
			chunks = append(chunks, uint32(i))
		}
	}
	return chunks
}

// start begins to fetch from a source.
func (p *plannedFetch) start(ctx context.Context, source *wire.ChunkSource) {
	if p.streams >= 2*maxStreams || len(source.GetChunks()) == 0 {
		return
	}
	for _, i := range source.GetChunks() {
		if int(i) >= len(p.manifest.Chunks) {
			return
		}
		p.coming.Add(int(i))
	}
	p.streams++
	if source.GetMachine() == "" {
		p.fromServer = true
	}
	go func() {
		outcome, err := p.receive(ctx, source)
		p.events <- sourceEvent{source, -1, outcome, err}
	}()
}

// apply notes what has come, and how a source has ended. An error ends the fetch.
func (p *plannedFetch) apply(e sourceEvent) error {
	if e.chunk >= 0 {
		if !p.have.Has(e.chunk) {
			p.have.Add(e.chunk)
			p.haveBytes += int64(p.manifest.ChunkSize(e.chunk))
			p.last = time.Now()
			p.Counter.Received(p.manifest.ChunkSize(e.chunk), e.source.GetMachine() == "")
			p.progress(p.haveBytes, p.manifest.Size)
		}
		return nil
	}
	p.streams--
	for _, i := range e.source.GetChunks() {
		p.coming.Remove(int(i))
	}
	p.results = append(p.results, &wire.ChunkResult{Node: e.source.GetNode(), Machine: e.source.GetMachine(),
		Outcome: e.outcome})
	if e.source.GetMachine() == "" {
		p.fromServer = false
		if e.err != nil {
			p.serverFailures++
			p.serverErr = e.err
		}
	} else if e.outcome != wire.ChunkResult_OUTCOME_ARRIVED {
		p.Counter.Failed(e.outcome)
	}
	if local, ok := errors.AsType[*localError](e.err); ok {
		return local.error
	}
	if p.serverFailures >= maxServerFailures || errors.Is(p.serverErr, roost.NotFound) {
		return p.serverErr
	}
	return nil
}

// localError is an error of this machine, for which no source is to blame.
type localError struct{ error }

// receive gets the chunks of a source.
func (p *plannedFetch) receive(ctx context.Context, source *wire.ChunkSource) (wire.ChunkResult_Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(p.timeFor(source), func() { cancel(errStalled) })
	defer stall.Stop()
	req := &wire.BlobRequest{Digest: string(p.digest), Chunks: source.GetChunks()}
	recv, done, err := p.open(ctx, source, req)
	if err != nil {
		return outcomeOf(err), rpc.FromStatus(err)
	}
	defer done()
	buffer := make([]byte, 0, store.ChunkBytes)
	for _, want := range source.GetChunks() {
		begun := time.Now()
		i, data, err := receiveChunk(func() (*wire.BlobPart, error) {
			part, err := recv()
			stall.Reset(min(p.timeFor(source), max(0, chunkTimeout-time.Since(begun))))
			return part, err
		}, p.manifest, buffer)
		if err == nil && i != int(want) {
			err = fmt.Errorf("%w: chunk %d was wanted, and %d came", roost.Invalid, want, i)
		}
		if err != nil {
			if context.Cause(ctx) == errStalled {
				err = errStalled
			}
			return outcomeOf(err), rpc.FromStatus(err)
		}
		if err := p.in.Put(i, data); errors.Is(err, roost.Invalid) {
			return wire.ChunkResult_OUTCOME_DAMAGED, err
		} else if err != nil {
			return wire.ChunkResult_OUTCOME_ABANDONED, &localError{err}
		}
		p.events <- sourceEvent{source: source, chunk: i}
	}
	return wire.ChunkResult_OUTCOME_ARRIVED, nil
}

// errStalled says that a source sent nothing for too long.
var errStalled = fmt.Errorf("%w: nothing came in time", roost.Unavailable)

// timeFor is how long a source may send nothing.
func (p *plannedFetch) timeFor(source *wire.ChunkSource) time.Duration {
	switch {
	case source.GetMachine() == "":
		return chunkTimeout // it may have a transfer wait for others
	case p.StallTime > 0:
		return p.StallTime
	}
	return stallTime
}

// open calls a source.
func (p *plannedFetch) open(ctx context.Context, source *wire.ChunkSource, req *wire.BlobRequest) (
	recv func() (*wire.BlobPart, error), done func(), err error) {
	if source.GetMachine() == "" {
		stream, err := p.Server.GetChunks(ctx, req)
		if err != nil {
			return nil, nil, err
		}
		return stream.Recv, func() {}, nil
	}
	machine, done, err := p.Dial(source.GetNode(), source.GetAddress())
	if err != nil {
		return nil, nil, err
	}
	stream, err := machine.GetChunks(ctx, req)
	if err != nil {
		done()
		return nil, nil, err
	}
	return stream.Recv, done, nil
}

// outcomeOf returns how a source did that ended with an error.
func outcomeOf(err error) wire.ChunkResult_Outcome {
	switch err := rpc.FromStatus(err); {
	case errors.Is(err, roost.Invalid), errors.Is(err, store.ErrDamaged):
		return wire.ChunkResult_OUTCOME_DAMAGED
	case errors.Is(err, roost.Exhausted):
		return wire.ChunkResult_OUTCOME_BUSY
	case errors.Is(err, roost.NotFound):
		return wire.ChunkResult_OUTCOME_MISSING
	case errors.Is(err, context.Canceled):
		return wire.ChunkResult_OUTCOME_ABANDONED
	}
	return wire.ChunkResult_OUTCOME_SLOW
}
