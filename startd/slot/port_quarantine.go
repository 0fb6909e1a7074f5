package slot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/roost-batch/roost"
)

// portQuarantine holds the ports in quarantine. A request looks up those of its own job,
// and ends what is over, without a look at all others.
type portQuarantine struct {
	freed map[uint16]FreedPort
	byJob map[string][]uint16 // numbers of freed by their jobs, sorted
	// in the order in which quarantines end, with some that have ended early
	ends []FreedPort
}

func newPortQuarantine() portQuarantine {
	return portQuarantine{freed: make(map[uint16]FreedPort), byJob: make(map[string][]uint16)}
}

// addFreed puts a port into quarantine, in place of an earlier one of that number.
func (q *portQuarantine) addFreed(f FreedPort) {
	if q.freed[f.Number] == f {
		return // one entry of ends for each
	}
	q.removeFreed(f.Number)
	q.freed[f.Number] = f
	numbers := q.byJob[f.Job]
	at, _ := slices.BinarySearch(numbers, f.Number)
	q.byJob[f.Job] = slices.Insert(numbers, at, f.Number)
	if len(q.ends) > 2*maxFreedPorts { // most have ended early
		q.ends = slices.DeleteFunc(q.ends, func(e FreedPort) bool { return q.freed[e.Number] != e })
	}
	after := len(q.ends) // nearly always the last to end: the quarantines of a machine are equally long
	for after > 0 && q.ends[after-1].Until > f.Until {
		after--
	}
	q.ends = slices.Insert(q.ends, after, f)
}

// removeFreed ends the quarantine of a port, and reports whether there was one.
func (q *portQuarantine) removeFreed(number uint16) bool {
	f, ok := q.freed[number]
	if !ok {
		return false
	}
	delete(q.freed, number)
	numbers := q.byJob[f.Job]
	at, _ := slices.BinarySearch(numbers, number)
	if numbers = slices.Delete(numbers, at, at+1); len(numbers) == 0 {
		delete(q.byJob, f.Job)
	} else {
		q.byJob[f.Job] = numbers
	}
	return true
}

// endDue ends the quarantines whose time is over, and returns how many there were.
func (q *portQuarantine) endDue(now roost.BootTime) (ended uint64) {
	due := 0
	for ; due < len(q.ends) && now >= q.ends[due].Until; due++ {
		if e := q.ends[due]; q.freed[e.Number] == e {
			q.removeFreed(e.Number)
			ended++
		}
	}
	q.ends = q.ends[due:]
	return ended
}

// Freed lists the ports in quarantine by their numbers.
func (q *portQuarantine) Freed() []FreedPort {
	list := make([]FreedPort, 0, len(q.freed))
	for _, number := range slices.Sorted(maps.Keys(q.freed)) {
		list = append(list, q.freed[number])
	}
	return list
}

// checkQuarantine panics when the two orders of ports in quarantine do not have all of
// them, or not in order.
func (q *portQuarantine) checkQuarantine() {
	n := 0
	for job, numbers := range q.byJob {
		n += len(numbers)
		for _, number := range numbers {
			if f, freed := q.freed[number]; !freed || f.Job != job {
				panic(fmt.Sprintf("port %d is listed for %s, and its quarantine is %+v", number, job, f))
			}
		}
		if !slices.IsSorted(numbers) {
			panic(fmt.Sprintf("the ports of %s are not sorted: %v", job, numbers))
		}
	}
	if n != len(q.freed) {
		panic(fmt.Sprintf("%d ports are in quarantine, and jobs have %d of them", len(q.freed), n))
	}
	inOrder := func(a, b FreedPort) int { return cmp.Compare(a.Until, b.Until) }
	if !slices.IsSortedFunc(q.ends, inOrder) {
		panic(fmt.Sprintf("the ends of quarantines are not in order: %v", q.ends))
	}
	known := make(map[FreedPort]bool, len(q.ends))
	for _, e := range q.ends {
		known[e] = true
	}
	for _, f := range q.freed {
		if !known[f] {
			panic(fmt.Sprintf("the quarantine of %+v would not end", f))
		}
	}
}
