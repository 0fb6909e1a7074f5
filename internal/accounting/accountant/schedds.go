package accountant

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/rpc"
)

// maxSchedds bounds the schedds that are followed.
const maxSchedds = 10_000

// scheddSet is the followers of all schedds of the pool.
type scheddSet struct {
	node     *config.Node
	identity *rpc.Identity
	store    Store
	log      *slog.Logger
	budgets  *spentBudgets
	metrics  *metrics.Accountant

	running sync.WaitGroup
	mu      sync.Mutex
	all     map[string]*runningFollower
}

type runningFollower struct {
	follower
	stop context.CancelFunc
}

// watch follows the schedds that the collectors know, until ctx ends. One whose ad is
// gone may only have lost its collectors: it is still called.
func (s *scheddSet) watch(ctx context.Context) {
	if s.node.Schedd != nil { // also where no collector knows it
		s.follow(ctx, s.node.Name, s.node.Schedd.Socket)
	}
	w := adclient.AdWatcher{Collectors: s.node.Collectors, Identity: s.identity, Type: "Scheduler", Log: s.log,
		Apply: func(changes []adclient.AdChange, _ bool) {
			for i := range changes {
				s.onAd(ctx, &changes[i])
			}
		}}
	w.Run(ctx)
	s.running.Wait()
}

func (s *scheddSet) onAd(ctx context.Context, c *adclient.AdChange) {
	if c.Removed || c.Name == s.node.Name && s.node.Schedd != nil {
		return
	}
	ad, err := classad.Parse(c.Ad)
	if err != nil {
		s.log.Warn("ad of a schedd makes no sense", "schedd", c.Name, "error", err)
		return
	}
	if address, ok := ad.Str(roost.AttrMyAddress); ok {
		s.follow(ctx, c.Name, address)
	}
}

// follow begins to follow a schedd, or does so at another address.
func (s *scheddSet) follow(ctx context.Context, host, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := &sourceState{}
	state.complete.Store(time.Now().UnixMilli()) // the lag begins with the accountant
	if old := s.all[host]; old != nil {
		if old.address == address {
			return
		}
		old.stop()
		state = old.state
	} else if len(s.all) >= maxSchedds {
		s.log.Warn("there are too many schedds to follow them all", "schedd", host, "most", maxSchedds)
		return
	}
	ctx, stop := context.WithCancel(ctx)
	f := &runningFollower{follower{host: host, address: address, own: s.node.AccountantAt, identity: s.identity,
		store: s.store, log: s.log, state: state, budgets: s.budgets, metrics: s.metrics,
		advance: min(maxAdvance, s.node.Accountant.ReconcileEvery)}, stop}
	if s.all == nil {
		s.all = map[string]*runningFollower{}
	}
	s.all[host] = f
	s.running.Go(func() { f.run(ctx) })
}
