package eventloop

import "time"

// PlannedEvent is an event at a time and place. The simulation defines the meaning of
// Place, Kind, Life and Number.
type PlannedEvent struct {
	At         time.Duration // since the beginning of the simulation
	Place      int32
	Kind       uint8
	Generation uint32
	Number     uint64
	Payload    any // not part of the digest; a pointer costs no allocation
}

// heapEntry refers to an event from the heap. The heap moves these small entries, and the
// events do not move.
type heapEntry struct {
	at    time.Duration
	order uint64
	slot  uint32
}

func (e *heapEntry) before(o *heapEntry) bool {
	return e.at < o.at || e.at == o.at && e.order < o.order
}

// Loop plans events and runs them in order. The zero value is a clock at 0 with no
// events.
type Loop struct {
	now          time.Duration
	heap         []heapEntry // four children each: less deep than a binary heap
	events       []PlannedEvent
	free         []uint32
	plannedCount uint64
	eventCount   uint64
	digest       uint64
}

// Now returns the time of the last event.
func (k *Loop) Now() time.Duration { return k.now }

// EventCount returns the number of events so far.
func (k *Loop) EventCount() uint64 { return k.eventCount }

// PendingCount returns the number of planned events.
func (k *Loop) PendingCount() int { return len(k.heap) }

// Digest returns the digest of all events so far, in order.
func (k *Loop) Digest() uint64 { return k.digest }

// Schedule plans an event. An event in the past happens now.
func (k *Loop) Schedule(e PlannedEvent) {
	e.At = max(e.At, k.now)
	slot := uint32(len(k.events))
	if n := len(k.free); n > 0 {
		slot, k.free = k.free[n-1], k.free[:n-1]
		k.events[slot] = e
	} else {
		k.events = append(k.events, e)
	}
	k.plannedCount++
	k.heap = append(k.heap, heapEntry{e.At, k.plannedCount, slot})
	k.siftUp(len(k.heap) - 1)
}

// NextTime returns the time of the next event; ok is false if none is planned.
func (k *Loop) NextTime() (at time.Duration, ok bool) {
	if len(k.heap) == 0 {
		return 0, false
	}
	return k.heap[0].at, true
}

// RunNext removes the next event, advances the clock to it and returns it; ok is false if
// none is planned.
func (k *Loop) RunNext() (e PlannedEvent, ok bool) {
	if len(k.heap) == 0 {
		return e, false
	}
	first := k.heap[0]
	last := len(k.heap) - 1
	k.heap[0] = k.heap[last]
	k.heap = k.heap[:last]
	if last > 0 {
		k.siftDown(0)
	}
	e = k.events[first.slot]
	k.events[first.slot].Payload = nil
	k.free = append(k.free, first.slot)
	k.now = e.At
	k.eventCount++
	k.AddToDigest(uint64(e.At))
	k.AddToDigest(uint64(uint32(e.Place))<<32 | uint64(e.Kind))
	k.AddToDigest(e.Number)
	return e, true
}

// AdvanceTo advances the clock without an event. The clock never goes back, and never
// past a planned event.
func (k *Loop) AdvanceTo(to time.Duration) {
	if at, ok := k.NextTime(); ok {
		to = min(to, at)
	}
	k.now = max(k.now, to)
}

// AddToDigest adds a number to the digest.
func (k *Loop) AddToDigest(what uint64) { k.digest = mixBits(k.digest ^ mixBits(what+goldenGamma)) }

const heapDegree = 4

func (k *Loop) siftUp(i int) {
	moved := k.heap[i]
	for i > 0 {
		parent := (i - 1) / heapDegree
		if !moved.before(&k.heap[parent]) {
			break
		}
		k.heap[i] = k.heap[parent]
		i = parent
	}
	k.heap[i] = moved
}

func (k *Loop) siftDown(i int) {
	moved := k.heap[i]
	for {
		least, first := -1, i*heapDegree+1
		for child := first; child < min(first+heapDegree, len(k.heap)); child++ {
			if least < 0 || k.heap[child].before(&k.heap[least]) {
				least = child
			}
		}
		if least < 0 || !k.heap[least].before(&moved) {
			break
		}
		k.heap[i] = k.heap[least]
		i = least
	}
	k.heap[i] = moved
}
