package kernel

import "time"

// Event is something that happens somewhere at an instant. What place, kind, life and number mean is the simulation's.
type Event struct {
	At     time.Duration // since the beginning
	Place  int32
	Kind   uint8
	Life   uint32
	Number uint64
	With   any // not part of the digest; a pointer costs no allocation
}

// entry is an event's place in the heap. The events themselves lie still: what the heap moves is small.
type entry struct {
	at    time.Duration
	order uint64
	slot  uint32
}

func (e *entry) before(o *entry) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// Kernel plans events and lets them happen. The zero value is a clock at 0 with nothing planned.
type Kernel struct {
	now      time.Duration
	heap     []entry // of four children each, which is less deep than of two
	events   []Event
	free     []uint32
	planned  uint64
	happened uint64
	digest   uint64
}

// Now is the instant of the last event.
func (k *Kernel) Now() time.Duration { return k.now }

// Happened counts the events so far.
func (k *Kernel) Happened() uint64 { return k.happened }

// Planned is how many events are to come.
func (k *Kernel) Planned() int { return len(k.heap) }

// Digest stands for all events so far, in their order.
func (k *Kernel) Digest() uint64 { return k.digest }

// Plan has an event happen. What is planned for the past happens now.
func (k *Kernel) Plan(e Event) {
	e.At = max(e.At, k.now)
	slot := uint32(len(k.events))
	if n := len(k.free); n > 0 {
		slot, k.free = k.free[n-1], k.free[:n-1]
		k.events[slot] = e
	} else {
		k.events = append(k.events, e)
	}
	k.planned++
	k.heap = append(k.heap, entry{e.At, k.planned, slot})
	k.up(len(k.heap) - 1)
}

// Peek is when the next event happens; ok is false when none is planned.
func (k *Kernel) Peek() (at time.Duration, ok bool) {
	if len(k.heap) == 0 {
		return 0, false
	}
	return k.heap[0].at, true
}

// Next lets the next event happen; ok is false when none is planned.
func (k *Kernel) Next() (e Event, ok bool) {
	if len(k.heap) == 0 {
		return e, false
	}
	first := k.heap[0]
	last := len(k.heap) - 1
	k.heap[0] = k.heap[last]
	k.heap = k.heap[:last]
	if last > 0 {
		k.down(0)
	}
	e = k.events[first.slot]
	k.events[first.slot].With = nil
	k.free = append(k.free, first.slot)
	k.now = e.At
	k.happened++
	k.Note(uint64(e.At))
	k.Note(uint64(uint32(e.Place))<<32 | uint64(e.Kind))
	k.Note(e.Number)
	return e, true
}

// Skip has the clock show an instant at which nothing happens. It never goes back, and never past an event.
func (k *Kernel) Skip(to time.Duration) {
	if at, ok := k.Peek(); ok {
		to = min(to, at)
	}
	k.now = max(k.now, to)
}

// Note adds something to the digest.
func (k *Kernel) Note(what uint64) { k.digest = mix(k.digest ^ mix(what+golden)) }

const degree = 4

func (k *Kernel) up(i int) {
	moved := k.heap[i]
	for i > 0 {
		parent := (i - 1) / degree
		if !moved.before(&k.heap[parent]) {
			break
		}
		k.heap[i] = k.heap[parent]
		i = parent
	}
	k.heap[i] = moved
}

func (k *Kernel) down(i int) {
	moved := k.heap[i]
	for {
		least, first := -1, i*degree+1
		for child := first; child < min(first+degree, len(k.heap)); child++ {
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
