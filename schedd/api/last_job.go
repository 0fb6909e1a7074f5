package api

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// cellSubmissions remembers the last job that each user of this host has submitted to the
// queue of the cell.
type cellSubmissions struct {
	mu    sync.Mutex
	byUID map[uint32]cellSubmission
	since time.Time // since when it has all of them; zero: since the schedd has started
}

type cellSubmission struct {
	id string
	at time.Time
}

// maxCellSubmissions bounds how many users' submissions are remembered.
const maxCellSubmissions = 10_000

func (c *cellSubmissions) note(now time.Time, uid uint32, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byUID == nil || len(c.byUID) >= maxCellSubmissions {
		if c.byUID != nil {
			c.since = now
		}
		c.byUID = map[uint32]cellSubmission{}
	}
	c.byUID[uid] = cellSubmission{id, now}
}

// last returns what a user has submitted last. Without that, since is from when on it
// would be known.
func (c *cellSubmissions) last(uid uint32, started time.Time) (s cellSubmission, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.After(started) {
		started = c.since
	}
	return c.byUID[uid], started
}

// lastInCell returns the last job of a user if it is in the queue of the cell. It returns
// "" if that is in the queue of this host.
func lastInCell(ctx context.Context, s *Service, who queue.CallerIdentity) (string, error) {
	cell := userCellQueue(s, who)
	if cell == "" {
		return "", nil
	}
	local, err := lastSubmittedHere(ctx, s, who.User)
	if err != nil {
		return "", err
	}
	noted, since := s.cellSubmissions.last(who.UID, s.started)
	switch {
	case noted.id != "" && !noted.at.Before(local):
		return noted.id, nil
	case noted.id != "" || local.After(since):
		return "", nil
	}
	rows, err := s.peerSchedds.JobsOfPeer(ctx, cell, who, &wire.QueryRequest{History: true, Ads: true, Limit: 1,
		Selection: &wire.Selection{Selectors: []string{"last"}}})
	if err != nil {
		return "", fmt.Errorf("last: %w; your last job may be in the queue of the cell: name it by its id", err)
	}
	if len(rows) == 0 {
		return "", nil
	}
	row := rows[0]
	switch {
	case local.After(time.Unix(0, row.GetSubmitted())):
		return "", nil
	case submitHost(row) != s.node.Name:
		return "", fmt.Errorf("last: %w: your last job in the queue of the cell, %s, is from another node: name the "+
			"job by its id", roost.Conflict, row.GetId())
	}
	return row.GetId(), nil
}

// submitHost returns the node from which a job was submitted.
func submitHost(row *wire.JobStatus) string {
	ad, err := classad.Parse(row.GetAd())
	if err != nil {
		return ""
	}
	host, _ := ad.Str(roost.AttrSubmitHost)
	return host
}

// lastSubmittedHere returns when a user has submitted the newest job of this host's queue
// or history. The time is zero if there is none.
func lastSubmittedHere(ctx context.Context, s *Service, user string) (at time.Time, err error) {
	var id roost.JobID
	var found bool
	if err := s.loop.CallLoop(ctx, func(time.Time) {
		if id, found = s.queue.NewestJob(user); found {
			st, _ := s.queue.Status(id.Seq)
			at = time.Unix(0, st.Submitted)
		}
	}); err != nil || found {
		return at, err
	}
	if id, found = s.newestHistoryJob(user); !found {
		return at, nil
	}
	past, _, err := s.history.Job(id.Seq)
	if errors.Is(err, roost.NotFound) {
		return at, nil // it was removed meanwhile
	}
	if err == nil {
		st, _ := past.Status(id.Seq)
		at = time.Unix(0, st.Submitted)
	}
	return at, err
}
