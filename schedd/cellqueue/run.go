package cellqueue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/schedd"
)

// cell is a member with the schedd that it runs while it leads.
type cell struct {
	member   *Member
	node     *config.Node // as the queue's schedd reads it
	identity *rpc.Identity
	log      *slog.Logger

	lastIncarnation uint64
}

// Run serves as a member of the cell's queue until ctx ends. A nil identity speaks over
// unix sockets only.
func Run(ctx context.Context, node *config.Node, identity *rpc.Identity) error {
	q := node.CellQueue
	if q == nil {
		return fmt.Errorf("node %s: %w: the node file has no cell_queue block", node.Name, roost.BadConfig)
	}
	log := daemon.Logger("cell-queue")
	c := &cell{node: node.CellQueueNode(), identity: identity, log: log}
	listener, err := rpc.Listen(q.Member, 0o600)
	if err != nil {
		return fmt.Errorf("cell queue: %w", err)
	}
	if c.member, err = Open(memberConfig(node, identity, log)); err != nil {
		listener.Close()
		return fmt.Errorf("cell queue: %w", err)
	}
	server := rpc.NewServer(identity, peer.MethodAccess(), grpc.WaitForHandlers(true))
	c.member.Register(server)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(listener) })
	group.Go(func() error {
		defer server.Stop()
		return c.runMember(ctx)
	})
	daemon.ReportReady()
	log.Info("a member of the cell's queue", "queue", c.node.Name, "members", len(q.Members))
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// memberConfig returns the configuration of a node's member.
func memberConfig(node *config.Node, identity *rpc.Identity, log *slog.Logger) Config {
	q, dir := node.CellQueue, node.CellQueueDir()
	return Config{
		Dir: filepath.Join(dir, "schedd"), Name: node.Pool, Log: log,
		Replica: replica.Config{Dir: filepath.Join(dir, "replica"), Name: node.Name, Address: q.Member,
			Peers: q.Members, ElectionTimeout: node.Negotiator.Election, Identity: identity, Log: log},
	}
}

// runMember runs the replica, and the schedd while this member leads. The replica ends
// last: the schedd's last batch goes through it.
func (c *cell) runMember(ctx context.Context) error {
	replicaContext, stopReplica := context.WithCancel(context.WithoutCancel(ctx))
	defer stopReplica()
	ended := make(chan error, 1)
	go func() { ended <- c.member.Run(replicaContext) }()
	leading, stopLeading := context.WithCancel(ctx)
	defer stopLeading()
	led := make(chan error, 1)
	go func() { led <- c.followLeadership(leading) }()
	select {
	case err := <-ended:
		stopLeading()
		return errors.Join(err, <-led)
	case err := <-led:
		stopReplica()
		return errors.Join(err, <-ended)
	}
}

// retryLeading is how long a member that still leads waits before it starts a schedd
// again that has ended.
const retryLeading = 200 * time.Millisecond

// followLeadership runs the schedd while this member leads, until ctx ends.
func (c *cell) followLeadership(ctx context.Context) error {
	var now replica.LeadershipChange
	var running *leadingSchedd
	for {
		var ended <-chan error
		var again <-chan time.Time
		switch {
		case running != nil:
			ended = running.ended
		case now.IsLeader:
			again = time.After(retryLeading)
		}
		select {
		case <-ctx.Done():
			if running != nil {
				return c.endSchedd(running)
			}
			return ctx.Err()
		case change := <-c.member.Replica().Leadership():
			if running != nil && (!change.IsLeader || change.Term != now.Term) {
				if err := c.endSchedd(running); err != nil {
					return err
				}
				running = nil
			}
			now = change
		case err := <-ended:
			running.cancel()
			running = nil
			if err = c.afterSchedd(err); err != nil {
				return err
			}
			continue
		case <-again:
		}
		if now.IsLeader && running == nil {
			var err error
			if running, err = c.startSchedd(ctx, now.Term); err != nil {
				return err
			}
		}
	}
}

// leadingSchedd is the schedd of a member that leads.
type leadingSchedd struct {
	cancel context.CancelFunc
	ended  chan error
}

// incarnationsOfTerm bounds how often a schedd can be started in a term of raft.
const incarnationsOfTerm = 1 << 8

func (c *cell) startSchedd(ctx context.Context, term uint64) (*leadingSchedd, error) {
	if err := c.member.StepUp(); err != nil {
		return nil, err
	}
	c.lastIncarnation = max(c.lastIncarnation+1, term*incarnationsOfTerm)
	ctx, cancel := context.WithCancel(ctx)
	s := &leadingSchedd{cancel, make(chan error, 1)}
	began := time.Now()
	log := schedd.ReplicatedLog{
		Open: c.member.OpenJournal, History: c.member.History(), RemoveHistory: c.member.RemoveHistory,
		Incarnation: c.lastIncarnation,
		Confirm:     c.member.Replica().Verify,
		Serving: func() {
			c.log.Info("this member acts for the queue", "queue", c.node.Name, "term", term, "took", time.Since(began))
		},
	}
	go func() { s.ended <- schedd.RunReplicated(ctx, c.node, c.identity, log) }()
	return s, nil
}

// endSchedd ends the schedd, and follows.
func (c *cell) endSchedd(s *leadingSchedd) error {
	s.cancel()
	return c.afterSchedd(<-s.ended)
}

// afterSchedd follows after the schedd has ended. What it could not do because it is no
// longer the leader is no error.
func (c *cell) afterSchedd(err error) error {
	if err != nil && !isLostLeadership(err) {
		return errors.Join(err, c.member.StepDown())
	}
	if err != nil {
		c.log.Info("the schedd of the queue has ended", "queue", c.node.Name, "reason", err)
	}
	return c.member.StepDown()
}

// isLostLeadership reports whether an error is that another member leads, or none.
func isLostLeadership(err error) bool {
	for _, kind := range []error{roost.Unavailable, roost.Stale, roost.Exhausted, context.Canceled} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
