package schedd

import (
	"context"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/release"
	"github.com/roost-batch/roost/schedd/dispatch"
)

// advertiseInterval is how often the schedd updates the numbers in its ad. They are for
// people, and nothing is decided by them.
const advertiseInterval = 10 * time.Second

// runAdvertiser sends the schedd's ad to the collectors until ctx ends. The ad says where
// the schedd can be asked and how much it has to do.
func (s *Schedd) runAdvertiser(ctx context.Context) {
	if len(s.node.Collectors) == 0 {
		return
	}
	client := adclient.New(adclient.ClientConfig{Collectors: s.node.Collectors, Identity: s.identity, Type: "Scheduler",
		Name: s.node.Name, Log: s.log})
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { client.Run(ctx) })
	for {
		var l scheddLoad
		if s.callLoop(ctx, func(time.Time) { l = s.taskLoad() }) != nil {
			return
		}
		client.Update(s.buildAd(l, client.Started()), nil)
		select {
		case <-ctx.Done():
			return
		case <-time.After(advertiseInterval):
		}
	}
}

// scheddLoad is how much a schedd has to do, in tasks.
type scheddLoad struct{ queued, running int }

// taskLoad counts. The loop calls it.
func (s *Schedd) taskLoad() (l scheddLoad) {
	l.queued = s.queue.OpenTaskCount()
	s.dispatch.EachClaim(func(c *dispatch.Claim) {
		if c.State == dispatch.Busy && c.Running {
			l.running++
		}
	})
	return l
}

// buildAd is the schedd's ad. Without an address it listens to nobody but its own host.
func (s *Schedd) buildAd(l scheddLoad, started int64) string {
	ad := classad.New()
	ad.SetString(roost.AttrMyType, "Scheduler")
	ad.SetString(roost.AttrName, s.node.Name)
	if listen := s.node.Schedd.Listen; len(listen) > 0 {
		ad.SetString(roost.AttrMyAddress, config.AdvertisedAddress(listen))
	}
	release.Describe(ad)
	ad.SetInt(roost.AttrNumTasks, int64(l.queued))
	ad.SetInt(roost.AttrNumRunning, int64(l.running))
	ad.SetInt(roost.AttrDaemonStart, started/int64(time.Second))
	s.node.DescribeMetrics(ad, "")
	return ad.String()
}
