package match

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// Who simulates a pool, or reads one that was written down, has no ads of machines to read: what follows makes machines of machines.

// Claimed is the machine with these claims and heirs in place of what its ad said of them; unclear says why nobody knows them.
func (m *Machine) Claimed(claims, heirs []Claim, unclear error) *Machine {
	next := *m
	next.Claims, next.Heirs, next.Unclear, next.in = claims, heirs, unclear, nil
	next.weighClaims()
	return &next
}

// describe writes what is free of a machine into its ad, so that amounts reads the same.
func describe(ad *classad.Ad, r roost.Resources) {
	ad.SetReal(roost.AttrCpus, r.CPU.Cores())
	ad.SetReal(roost.AttrMemory, float64(r.Memory)/float64(roost.MiB))
	ad.SetReal(roost.AttrDisk, float64(r.Disk)/float64(roost.KiB))
	ad.SetInt(roost.AttrGpus, int64(r.GPUs))
}

// Turnover is the machine as its next ad would show it when the claims of those numbers have ended, and then others have begun, whose placements are of that
// machine: see [Machine.Seat]. Nobody waits on it then. It is an error, of kind roost.Conflict, if they do not fit, and then nothing is known of the machine.
func (m *Machine) Turnover(ended []uint64, begun ...Claim) (*Machine, error) {
	f, err := m.seats(ended)
	if err != nil {
		return nil, err
	}
	claims := make([]Claim, 0, len(m.Claims)+len(begun))
	for i := range m.Claims {
		if !contains(ended, m.Claims[i].ID) {
			claims = append(claims, m.Claims[i])
		}
	}
	for _, c := range begun {
		if !f.Fits(c.Placement) {
			return nil, fmt.Errorf("%s: %w: claim %d finds no room", m.Name, roost.Conflict, c.ID)
		}
		f.Take(c.Placement)
		f.count(c.Placement, 1)
	}
	return m.next(f.Free, append(claims, begun...)), nil
}

// Seat is where the machine would put a request if the claims of those numbers had ended; alone: all of it. ok is false if there is no room.
func (m *Machine) Seat(ended []uint64, r gpu.Request, alone bool) (p gpu.Placement, ok bool) {
	f, err := m.seats(ended)
	switch {
	case err != nil:
		return p, false
	case alone:
		return f.Whole()
	}
	ok = f.Find(r, gpu.Anywhere, &p)
	return p, ok
}

// Vacated is the machine as it would be if nobody had anything of it.
func (m *Machine) Vacated() *Machine {
	f, err := gpu.Read(m.Ad)
	if err != nil {
		return m
	}
	run := make([]int, f.Len())
	for i := range run {
		run[i] = f.Queue(i).RunLimit
	}
	f = f.Empty()
	for i, n := range run {
		f.SetQueue(i, gpu.Queue{RunLimit: n})
	}
	return m.next(f, nil)
}

// seats are what is free of a machine when some claims have ended, and nobody waits for it.
type seats struct{ *gpu.Free }

func (m *Machine) seats(ended []uint64) (seats, error) {
	free, err := gpu.Read(m.Ad)
	if err != nil {
		return seats{}, fmt.Errorf("%s: %w", m.Name, err)
	}
	f := seats{free}
	for i := range m.Claims {
		if c := &m.Claims[i]; contains(ended, c.ID) {
			p := c.placement(m)
			if !free.CanGive([]gpu.Placement{p}) {
				return f, fmt.Errorf("%s: %w: claim %d holds more than the machine has given away", m.Name, roost.Conflict, c.ID)
			}
			f.Give(p)
			f.count(p, -1)
		}
	}
	for i := range f.Len() {
		q := f.Queue(i)
		q.Length, q.Room, q.Wait = 0, 0, 0
		f.SetQueue(i, q)
	}
	return f, nil
}

// count notes how many batch tasks run in the units of a placement.
func (f seats) count(p gpu.Placement, by int) {
	if p.Class != gpu.Batch {
		return
	}
	for _, part := range p.Parts {
		q := f.Queue(part.Unit)
		q.Running = max(q.Running+by, 0)
		f.SetQueue(part.Unit, q)
	}
}

// next is the machine with so much free and these claims.
func (m *Machine) next(f *gpu.Free, claims []Claim) *Machine {
	ad := m.Ad.Copy()
	describe(ad, f.Left())
	f.Describe(ad)
	return NewMachine(m.Name, m.Started, m.Sequence+1, ad).Claimed(claims, nil, nil)
}

func contains(ids []uint64, id uint64) bool {
	for _, one := range ids {
		if one == id {
			return true
		}
	}
	return false
}
