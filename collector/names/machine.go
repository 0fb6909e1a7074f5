package names

import (
	"container/heap"
	"net/netip"
	"time"

	"github.com/roost-batch/roost/internal/mutant"
)

// machine is a machine with endpoints.
type machine struct {
	name      string
	node      string
	addresses []netip.Addr
	endpoints []endpointText // in the order of the ad
	silent    bool           // its lease has expired
	expires   time.Time
	heapIndex int   // in the heap of leases; -1: silent
	checked   bool  // the rights of its endpoints were checked
	rightsEnd int64 // unix seconds: when the first of them expires; 0: none does
}

// RenewLease starts the lease of a machine's endpoints again. Endpoints of a machine that
// was silent exist again.
func (z *Zone) RenewLease(now time.Time, name string, lease time.Duration) {
	m := z.machines[name]
	if m == nil {
		return
	}
	if lease <= 0 || lease > maxLease {
		lease = maxLease
	}
	m.expires = now.Add(lease)
	if m.heapIndex < 0 {
		heap.Push(&z.leases, m)
	} else {
		heap.Fix(&z.leases, m.heapIndex)
	}
	if !mutant.Active(mutant.ReturnUnnoticed) {
		z.setSilent(m, false)
	}
	if m.rightsEnd > 0 && now.Unix() >= m.rightsEnd {
		z.dropExpired(now, m)
	}
}

// RemoveMachine removes a machine, because its ad was withdrawn or has expired.
func (z *Zone) RemoveMachine(now time.Time, name string) {
	if m := z.machines[name]; m != nil {
		z.replaceEndpoints(now, m, adReader{old: m.endpoints, used: make([]bool, len(m.endpoints))})
		z.forgetMachine(m)
	}
}

func (z *Zone) forgetMachine(m *machine) {
	delete(z.machines, m.name)
	if m.heapIndex >= 0 {
		heap.Remove(&z.leases, m.heapIndex)
	}
}

func (z *Zone) setSilent(m *machine, silent bool) {
	if m.silent == silent {
		return
	}
	m.silent = silent
	for _, e := range m.endpoints {
		z.selectShown(z.tasks[e.endpoint.TaskKey])
	}
}

// leaseHeap is a heap of machines by the end of the lease, then by name.
type leaseHeap []*machine

func (l leaseHeap) Len() int { return len(l) }

func (l leaseHeap) Less(i, j int) bool {
	if !l[i].expires.Equal(l[j].expires) {
		return l[i].expires.Before(l[j].expires)
	}
	return l[i].name < l[j].name
}

func (l leaseHeap) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].heapIndex, l[j].heapIndex = i, j
}

func (l *leaseHeap) Push(x any) {
	m := x.(*machine)
	m.heapIndex = len(*l)
	*l = append(*l, m)
}

func (l *leaseHeap) Pop() any {
	old := *l
	m := old[len(old)-1]
	old[len(old)-1] = nil
	m.heapIndex = -1
	*l = old[:len(old)-1]
	return m
}
