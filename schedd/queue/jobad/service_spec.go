package jobad

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/autoscale"
)

// ServiceSpec is what an ad says of a service: a job whose tasks are to run always.
type ServiceSpec struct {
	Count        int           // how many tasks are to run; 0: all that there are
	HasChecks    bool          // the machine says when a task is ready; otherwise it is when it runs
	LostAfter    time.Duration // 0: when the lease has run out
	Overlap      bool
	Restarts     int // on one machine within Window
	Window       time.Duration
	BackoffFirst time.Duration
	BackoffMax   time.Duration
	Checks       []HealthCheck
	Stop         StopOrder
	Logs         LogSpec
	Autoscale    *autoscale.Policy     // nil: its user says how many tasks it has
	Sizes        *autoscale.SizePolicy // nil: its user says how large they are
}

// serviceSpec reads what the ad says of a service; nil for a job that is none.
func (r *adReader) serviceSpec() *ServiceSpec {
	if !r.has(roost.AttrService) {
		return nil
	}
	ad, ok := r.ad.Sub(roost.AttrService)
	if !ok {
		r.fail(roost.AttrService, "an ad is wanted")
		return nil
	}
	in := adReader{ad: ad}
	s := &ServiceSpec{Checks: r.healthChecks(), Stop: r.stopOrder(ad), Logs: r.logSpec(),
		Autoscale: r.autoscalePolicy(), Sizes: r.sizePolicy()}
	s.HasChecks = len(s.Checks) > 0
	count, _ := r.ad.Int(roost.AttrTaskCount)
	s.Count = int(min(max(count, 0), roost.MaxTasks))
	if s.Overlap = in.boolean(roost.AttrOverlap, false); s.Overlap {
		s.LostAfter = roost.OverlapLostAfter
	}
	if in.has(roost.AttrLostAfter) {
		s.LostAfter = in.duration(roost.AttrLostAfter, roost.MinLostAfter, roost.MinLostAfter, maxSeconds*time.Second)
	}
	s.Restarts = int(in.number(roost.AttrRestarts, roost.DefaultServiceRestarts, 0, roost.MaxServiceRestarts))
	s.Window = in.duration(roost.AttrWindow, roost.DefaultRestartWindow, time.Second, maxSeconds*time.Second)
	s.BackoffFirst = in.duration(roost.AttrBackoffFirst, roost.DefaultBackoffFirst, roost.MinBackoff, roost.MaxBackoff)
	s.BackoffMax = in.duration(roost.AttrBackoffMax, max(roost.DefaultBackoffMax, s.BackoffFirst), s.BackoffFirst,
		roost.MaxBackoff)
	if in.err != nil {
		r.fail(roost.AttrService, in.err.Error())
	}
	r.refuseWithService()
	return s
}

// refuseWithService refuses what a service cannot have: it runs until it is removed.
func (r *adReader) refuseWithService() {
	for _, a := range []string{roost.AttrWalltime, roost.AttrMaxRetries} {
		if n, _ := r.ad.Int(a); n != 0 {
			r.fail(a, "a service runs until it is removed, and has none")
		}
	}
	if n, _ := r.ad.Int(roost.AttrGangSize); n > 1 {
		r.fail(roost.AttrGangSize, "the tasks of a service are kept running one by one, and make no gang")
	}
	for _, a := range []string{roost.AttrInteractive, roost.AttrMPIGang} {
		if on, _ := r.ad.Bool(a); on {
			r.fail(a, "a service has no terminal and no primary task")
		}
	}
	if on, ok := r.ad.Bool(roost.AttrRerunnable); ok && !on {
		r.fail(roost.AttrRerunnable, "a service is started again whenever it ends")
	}
}

// duration reads seconds.
func (r *adReader) duration(name string, otherwise, low, high time.Duration) time.Duration {
	if !r.has(name) {
		return otherwise
	}
	n, ok := r.ad.Real(name)
	if !ok || !(n >= low.Seconds() && n <= high.Seconds()) {
		r.fail(name, fmt.Sprintf("a number of seconds from %g to %g is wanted", low.Seconds(), high.Seconds()))
		return otherwise
	}
	return time.Duration(n * float64(time.Second))
}
