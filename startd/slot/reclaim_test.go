package slot

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/startd/reclaim"
)

// reclaim is the step that begins anew with a machine that reclaims so boldly.
func (s *scriptRunner) reclaim(w stepArguments) (err error) {
	opt := newTestTable(s.t, QueueOptions{}).opt
	opt.Reclaim, err = roost.ParseReclaimLevel(w.text("level", ""))
	s.core = New(opt)
	return err
}

// sample is the step in which claims use something, "1=MILLICPU:MIB". It lasts for a
// number of seconds, with a sample every two.
func (s *scriptRunner) sample(w stepArguments) {
	use := map[ClaimID]reclaim.ResourceAmount{}
	for id := range s.core.ids.next {
		if text := w.text(id.String(), ""); text != "" {
			var a reclaim.ResourceAmount
			if _, err := fmt.Sscan(strings.ReplaceAll(text, ":", " "), &a.CPU, &a.Memory); err != nil {
				s.t.Fatal(err)
			}
			a.Memory *= roost.MiB
			use[id] = a
		}
	}
	p := MemoryPressure{roost.Bytes(w.number("available", 0)) * roost.MiB,
		roost.Bytes(w.number("total", 0)) * roost.MiB}
	for end := s.now + time.Duration(w.number("seconds", 2))*time.Second; s.now < end; {
		s.now += 2 * time.Second
		s.core.AddUsageSamples(s.now, use, p)
	}
}

// showReclaimable shows what may be lent, and who is in it.
func (s *scriptRunner) showReclaimable(out io.Writer) {
	if !s.core.free.IsReclaiming() {
		return
	}
	for i := range s.core.free.Len() {
		r := s.core.free.Reclaimable(i, gpu.BatchClass)
		fmt.Fprintf(out, "%s: room for %v cores, %v; news %v\n", s.core.free.Unit(i).Name, r.CPU, r.Memory,
			s.core.IsReclaimableAdStale())
	}
	for _, c := range s.core.claims.sorted() {
		if c.hasPlacement {
			cpu, memory := c.Placement.UsageEstimate()
			fmt.Fprintf(out, "claim %d: %v cores and %v reserved, reclaimed %v\n", c.ID, cpu, memory,
				c.Placement.Reclaimed)
		}
	}
}

// addRandomSamples has the claims use something.
func addRandomSamples(r *rand.Rand, c *ClaimTable, now roost.BootTime) {
	use := map[ClaimID]reclaim.ResourceAmount{}
	for id := range c.claims {
		use[id] = reclaim.ResourceAmount{CPU: roost.MilliCPU(r.IntN(3000)),
			Memory: roost.Bytes(r.Int64N(int64(2 * roost.GiB)))}
	}
	c.AddUsageSamples(now, use, MemoryPressure{roost.Bytes(r.IntN(2000)) * roost.MiB, 64 * roost.GiB})
}
