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
func (s *teller) reclaim(w arguments) (err error) {
	opt := machine(s.t, QueueOptions{}).opt
	opt.Reclaim, err = roost.ParseReclaim(w.text("level", ""))
	s.core = New(opt)
	return err
}

// sample is the step in which claims are seen to use something, "1=MILLICPU:MIB", for so many seconds, looked at every two.
func (s *teller) sample(w arguments) {
	use := map[ClaimID]reclaim.Amount{}
	for id := range s.core.nextID {
		if text := w.text(id.String(), ""); text != "" {
			var a reclaim.Amount
			if _, err := fmt.Sscan(strings.ReplaceAll(text, ":", " "), &a.CPU, &a.Memory); err != nil {
				s.t.Fatal(err)
			}
			a.Memory *= roost.MiB
			use[id] = a
		}
	}
	p := Pressure{roost.Bytes(w.number("available", 0)) * roost.MiB, roost.Bytes(w.number("total", 0)) * roost.MiB}
	for end := s.now + time.Duration(w.number("seconds", 2))*time.Second; s.now < end; {
		s.now += 2 * time.Second
		s.core.Sampled(s.now, use, p)
	}
}

// room shows what may be lent, and who is in it.
func (s *teller) room(out io.Writer) {
	if !s.core.free.Reclaims() {
		return
	}
	for i := range s.core.free.Len() {
		r := s.core.free.Room(i, gpu.Batch)
		fmt.Fprintf(out, "%s: room for %v cores, %v; news %v\n", s.core.free.Unit(i).Name, r.CPU, r.Memory, s.core.RoomNews())
	}
	for _, c := range s.core.sorted() {
		if c.holds {
			cpu, memory := c.Placement.Reserved()
			fmt.Fprintf(out, "claim %d: %v cores and %v reserved, reclaimed %v\n", c.ID, cpu, memory, c.Placement.Reclaimed)
		}
	}
}

// sampleAtRandom has the claims use something.
func sampleAtRandom(r *rand.Rand, c *Core, now Instant) {
	use := map[ClaimID]reclaim.Amount{}
	for id := range c.claims {
		use[id] = reclaim.Amount{CPU: roost.MilliCPU(r.IntN(3000)), Memory: roost.Bytes(r.Int64N(int64(2 * roost.GiB)))}
	}
	c.Sampled(now, use, Pressure{roost.Bytes(r.IntN(2000)) * roost.MiB, 64 * roost.GiB})
}
