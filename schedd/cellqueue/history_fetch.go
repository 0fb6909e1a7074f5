package cellqueue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// gapFile says since when the history has a gap, if it has one. A snapshot of the queue
// lacks the jobs that ended and left the queue while this member was away. It asks the
// other members for them.
const gapFile = "history-gap"

// gapMargin is how much earlier than its newest job the history is asked for. Jobs enter
// the histories of members at somewhat different times.
const gapMargin = time.Hour

func (m *Member) gapPath() string { return filepath.Join(m.config.Dir, gapFile) }

// noteGap notes that the history has a gap from now on, unless it has one already. The
// lock is held.
func (m *Member) noteGap() error {
	if _, err := os.Stat(m.gapPath()); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	newest, err := m.history.NewestEntry()
	if err != nil {
		return err
	}
	since := int64(0)
	if !newest.IsZero() {
		since = newest.Add(-gapMargin).UnixNano()
	}
	return atomicfile.WriteDurable(m.gapPath(), []byte(strconv.FormatInt(since, 10)+"\n"), 0o600)
}

// gap returns since when the history has a gap, and whether it has one. A file that
// cannot be read stands for a gap since the beginning.
func (m *Member) gap() (since int64, found bool) {
	text, err := os.ReadFile(m.gapPath())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false
	}
	since, _ = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return since, true
}

// fetchRetry is how long a member waits before it asks the others again.
const fetchRetry = time.Second

// fillGaps fetches what the history lacks, until ctx ends.
func (m *Member) fillGaps(ctx context.Context) {
	for {
		var again <-chan time.Time
		if since, found := m.gap(); found {
			if err := m.fillGap(ctx, since); err != nil {
				m.log.Warn("the history lacks jobs that have ended", "error", err)
				again = time.After(fetchRetry)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-m.gapNoted:
		case <-again:
		}
	}
}

// fillGap asks the other members in turn, until one has answered.
func (m *Member) fillGap(ctx context.Context, since int64) error {
	err := fmt.Errorf("%w: there is no other member", roost.Unavailable)
	for _, address := range m.config.Replica.Peers {
		if address == m.config.Replica.Address {
			continue
		}
		var jobs int
		if jobs, err = m.fetchHistory(ctx, address, since); err == nil {
			m.log.Info("the history is complete again", "jobs", jobs, "from", address)
			return os.Remove(m.gapPath())
		}
	}
	return err
}

// fetchedJobs is how many jobs are added to the history at once.
const fetchedJobs = 500

// fetchHistory adds the jobs that entered the history of another member since a time.
func (m *Member) fetchHistory(ctx context.Context, address string, since int64) (jobs int, err error) {
	conn, err := rpc.Dial(address, m.config.Replica.Identity, peer.CellQueue)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	stream, err := wire.NewCellQueueClient(conn).History(ctx, &wire.CellHistoryRequest{SinceNs: since})
	if err != nil {
		return 0, err
	}
	batch := make(map[uint64][]byte)
	for {
		r, err := stream.Recv()
		if err == nil {
			batch[r.GetJob()] = r.GetRecord()
		} else if !errors.Is(err, io.EOF) {
			return jobs, rpc.FromStatus(err)
		}
		if len(batch) >= fetchedJobs || err != nil {
			if err := m.history.AddEncoded(batch); err != nil {
				return jobs, err
			}
			jobs += len(batch)
			clear(batch)
		}
		if err != nil {
			return jobs, nil
		}
	}
}

// historyService answers the other members.
type historyService struct {
	wire.UnimplementedCellQueueServer
	member *Member
}

// Register makes server accept the calls of the other members.
func (m *Member) Register(server grpc.ServiceRegistrar) {
	m.replica.Register(server)
	wire.RegisterCellQueueServer(server, historyService{member: m})
}

// History implements wire.CellQueueServer.
func (s historyService) History(req *wire.CellHistoryRequest,
	stream grpc.ServerStreamingServer[wire.CellHistoryRecord]) error {
	if _, found := s.member.gap(); found {
		return fmt.Errorf("%w: this member's own history has a gap", roost.Unavailable)
	}
	past := s.member.history
	seqs, err := past.Recent(time.Unix(0, req.GetSinceNs()))
	if err != nil {
		return err
	}
	for _, seq := range seqs {
		record, err := past.Encoded(seq)
		if errors.Is(err, roost.NotFound) {
			continue // it was removed meanwhile
		}
		if err == nil {
			err = stream.Send(&wire.CellHistoryRecord{Job: seq, Record: record})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
