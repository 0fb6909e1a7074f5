package startd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/store/transfer"
	"github.com/roost-batch/roost/internal/wire"
)

// Machines fetch container images and packages from each other. The checkpoint server
// says from whom, and has them all itself.

// imageExchange is what a machine tells the checkpoint server of itself, and sends to
// other machines.
type imageExchange struct {
	machine *wire.ChunkPlanRequest
	uploads *transfer.Uploads // nil: it sends nothing
	counter *metrics.ChunkCounters
}

// openUploads lets other machines fetch the images that are here.
func (m *startdHost) openUploads(rack string) {
	x := &m.exchange
	x.machine = &wire.ChunkPlanRequest{Node: m.node.Name, Machine: m.config.Name, Rack: rack}
	address := config.AdvertisedAddress(m.config.Listen)
	if m.config.Containers.NoUpload || strings.HasPrefix(address, rpc.RelayPrefix) { // nobody can fetch from it
		return
	}
	limit := int64(m.config.Containers.Upload)
	if limit == 0 {
		limit = halfLink("/sys/class/net")
	}
	x.machine.Address = address
	x.uploads = transfer.NewUploads(limit, m)
	m.log.Info("other machines may fetch container images", "bytes per second", roost.Bytes(limit))
}

// unknownLink is half of a link, in bytes per second, whose speed is unknown.
const unknownLink = 60 << 20

// halfLink returns half of what the fastest network link can do, in bytes per second.
func halfLink(dir string) int64 {
	fastest := int64(0)
	files, _ := filepath.Glob(filepath.Join(dir, "*", "speed"))
	for _, path := range files {
		text, err := os.ReadFile(path) // a link that is down has no speed
		if err != nil {
			continue
		}
		if megabits, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			fastest = max(fastest, megabits*1_000_000/8)
		}
	}
	if fastest == 0 {
		return unknownLink
	}
	return fastest / 2
}

// Received implements transfer.Counter.
func (m *startdHost) Received(bytes int, fromServer bool) {
	m.exchange.counter.Received(bytes, fromServer)
}

// Failed implements transfer.Counter.
func (m *startdHost) Failed(outcome wire.ChunkResult_Outcome) { m.exchange.counter.Failed(outcome) }

// Sent implements transfer.Counter.
func (m *startdHost) Sent(bytes int) { m.exchange.counter.Sent(bytes) }

// GetChunks sends chunks of images to another machine.
func (m *startdHost) GetChunks(req *wire.BlobRequest, stream grpc.ServerStreamingServer[wire.BlobPart]) error {
	if m.containers == nil || m.exchange.uploads == nil {
		return fmt.Errorf("chunks: %w: machine %s sends none to others", roost.NotFound, m.config.Name)
	}
	return m.exchange.uploads.Send(stream.Context(), m.containers.Blobs(), req, stream.Send)
}

// imageSource brings container images from other machines and the checkpoint server.
type imageSource struct{ host *startdHost }

// Fetch implements containerimage.Source.
func (s imageSource) Fetch(ctx context.Context, digest store.Digest, to *store.Directory,
	progress func(have, size int64)) error {
	m := s.host
	if m.node.ImageServer == "" {
		return fmt.Errorf("%w: %s names no checkpoint server, from where images come", roost.NotFound, m.node.Name)
	}
	conn, err := rpc.Dial(m.node.ImageServer, m.identity, peer.CheckpointServer)
	if err != nil {
		return err
	}
	defer conn.Close()
	fetcher := &transfer.Fetcher{Server: wire.NewCheckpointServerClient(conn), Machine: m.exchange.machine, Counter: m,
		Dial: m.dialMachine}
	if err := fetcher.Fetch(ctx, digest, to, progress); err != nil {
		return fmt.Errorf("checkpoint server %s: %w", m.node.ImageServer, err)
	}
	return nil
}

// dialMachine connects to the startd of another machine.
func (m *startdHost) dialMachine(node, address string) (c wire.StartdClient, done func(), err error) {
	conn, err := rpc.DialNode(address, m.identity, peer.Startd, node)
	if err != nil {
		return nil, nil, err
	}
	return wire.NewStartdClient(conn), func() { conn.Close() }, nil
}

// listInterval is how often a machine says which images it has. A checkpoint server that
// was started anew, or has forgotten the machine, learns it so.
const listInterval = 5 * time.Minute

// runImageLists says from time to time which images are here, until ctx ends.
func (m *startdHost) runImageLists(ctx context.Context) {
	if m.containers == nil || m.exchange.uploads == nil || m.node.ImageServer == "" {
		return
	}
	conn, err := rpc.Dial(m.node.ImageServer, m.identity, peer.CheckpointServer)
	if err != nil {
		m.log.Warn("other machines do not learn which images are here", "err", err)
		return
	}
	defer conn.Close()
	server := wire.NewCheckpointServerClient(conn)
	wait := rand.N(time.Second)
	for {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		wait = listInterval - rand.N(listInterval/4)
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := server.PlanChunks(call, m.imageList())
		cancel()
		if err != nil { // the server may be down, or of an earlier release
			m.log.Debug("the checkpoint server does not learn which images are here", "err", err)
		}
	}
}

// imageList returns the images that are here, as the checkpoint server is told.
func (m *startdHost) imageList() *wire.ChunkPlanRequest {
	x := m.exchange.machine
	list := &wire.ChunkPlanRequest{Node: x.GetNode(), Machine: x.GetMachine(), Address: x.GetAddress(),
		Rack: x.GetRack(), ListsWhole: true}
	digests := m.containers.Digests()
	for _, digest := range digests[:min(len(digests), maxAdvertisedImages)] {
		list.Whole = append(list.Whole, string(digest))
	}
	return list
}
