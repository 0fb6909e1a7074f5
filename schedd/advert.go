package schedd

import (
	"context"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/advertise"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/schedd/dispatch"
)

// advertEvery is how often the numbers in the schedd's ad are looked at: they are for people, and nothing is decided by them.
const advertEvery = 10 * time.Second

// keepAdvertised lets the pool know that there is this schedd, where it can be asked, and how much it has to do, until ctx ends.
func (s *Schedd) keepAdvertised(ctx context.Context) {
	if len(s.node.Collectors) == 0 {
		return
	}
	client := advertise.New(advertise.Config{Collectors: s.node.Collectors, Identity: s.identity, Type: "Scheduler", Name: s.node.Name, Log: s.log})
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { client.Run(ctx) })
	for {
		var l load
		if s.ask(ctx, func(time.Time) { l = s.load() }) != nil {
			return
		}
		client.Update(s.advert(l, client.Started()), nil)
		select {
		case <-ctx.Done():
			return
		case <-time.After(advertEvery):
		}
	}
}

// load is how much a schedd has to do, in tasks.
type load struct{ queued, running int }

// load counts. The loop calls it.
func (s *Schedd) load() (l load) {
	l.queued = s.queue.Tasks()
	s.dispatch.Each(func(c *dispatch.Claim) {
		if c.State == dispatch.Busy && c.Running {
			l.running++
		}
	})
	return l
}

// advert is the schedd's ad. Without an address it listens to nobody but its own host.
func (s *Schedd) advert(l load, started int64) string {
	ad := classad.New()
	ad.SetString(roost.AttrMyType, "Scheduler")
	ad.SetString(roost.AttrName, s.node.Name)
	if listen := s.node.Schedd.Listen; len(listen) > 0 {
		ad.SetString(roost.AttrMyAddress, config.Reach(listen))
	}
	ad.SetString(roost.AttrVersion, roost.Version)
	ad.SetInt(roost.AttrNumTasks, int64(l.queued))
	ad.SetInt(roost.AttrNumRunning, int64(l.running))
	ad.SetInt(roost.AttrDaemonStart, started/int64(time.Second))
	return ad.String()
}
