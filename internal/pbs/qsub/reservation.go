package qsub

import (
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// ReservationRequest is what pbs_rsub or pbs_ralter asks to reserve, and when.
type ReservationRequest struct {
	Start, End time.Time     // zero: not stated
	Duration   time.Duration // 0: not stated
	HasSize    bool          // Nodes or the amounts are stated
	Nodes      []string      // these machines as a whole
	CPUs, GPUs int           // or these amounts on any machines
	Memory     roost.Bytes
}

// ReservationName reports whether a destination is a reservation in the naming of
// pbs_rsub, and not a queue.
func ReservationName(name string) bool {
	digits, ok := strings.CutPrefix(name, "R")
	return ok && digits != "" && len(digits) <= 9 && strings.Trim(digits, "0123456789") == ""
}

// ParseReservation parses the values of -R, -E and -D, each empty if not given, and those
// of -l. Its errors are of type *RefusalError.
func ParseReservation(start, end, duration string, resources []string,
	caller QsubCaller) (w ReservationRequest, err error) {
	ok := true
	date := func(text string) (at time.Time) {
		if text != "" && ok {
			at, ok = parseDate(text, caller.Now)
		}
		return at
	}
	if w.Start, w.End = date(start), date(end); duration != "" && ok {
		w.Duration, ok = parseDuration(duration)
		ok = ok && w.Duration > 0
	}
	if !ok {
		return w, invalidTimesError("a time is [[[[CC]YY]MM]DD]hhmm[.SS], and a duration seconds or hh:mm:ss")
	}
	s := &JobSubmission{Caller: caller, ResourceValues: map[string]string{}}
	for _, r := range resources {
		if err := s.AddResources(r); err != nil {
			return w, err
		}
	}
	if walltime, stated := s.ResourceValues["walltime"]; stated && w.Duration == 0 {
		if w.Duration, ok = parseDuration(walltime); !ok || w.Duration == 0 {
			return w, illegalResourceError("walltime", "")
		}
	}
	delete(s.ResourceValues, "walltime")
	w.HasSize = len(s.ResourceValues) > 0
	return w, w.sumChunks(s)
}

// sumChunks computes the resources of all chunks. A reservation is of amounts on any
// machines, or of whole machines.
func (w *ReservationRequest) sumChunks(s *JobSubmission) error {
	const reservationHelp = "a reservation keeps ncpus, mem and ngpus wherever they are, or machines that host= " +
		"names, whole"
	for _, name := range SortedNames(s.ResourceValues) {
		if !slices.Contains([]string{"select", "place", "nodes", "ncpus", "mem", "ngpus", "host", "vnode"}, name) {
			return illegalResourceError(name, reservationHelp)
		}
	}
	if err := s.parseResources(); err != nil {
		return err
	}
	chunks, at, err := s.requestedChunks()
	if err != nil {
		return err
	}
	named := 0
	for i := range chunks {
		c := &chunks[i]
		if len(c.requirements)+len(c.counted) > 0 || c.virtualMemory > 0 || c.gpuMemory > 0 || c.disk > 0 {
			return illegalResourceError("select", reservationHelp)
		}
		if len(c.hosts) > 0 {
			named++
		}
		if c.memoryRequest() > 1<<52/roost.Bytes(c.count) {
			return illegalResourceError("mem", "it is more than can be counted")
		}
		w.Nodes = append(w.Nodes, c.hosts...)
		w.CPUs, w.GPUs, w.Memory = w.CPUs+c.count*c.cpus, w.GPUs+c.count*c.gpus,
			w.Memory+roost.Bytes(c.count)*c.memoryRequest()
	}
	_, placed := s.ResourceValues["place"]
	switch w.Nodes = slices.Compact(slices.Sorted(slices.Values(w.Nodes))); {
	case named > 0 && named < len(chunks):
		return illegalResourceError("select", "either each chunk names its machine, or none does: "+reservationHelp)
	case named > 0:
		w.CPUs, w.GPUs, w.Memory = 0, 0, 0
	case at.isExclusive() || at.group != "" || placed && at.arrangement != "free":
		return illegalResourceError("place", reservationHelp)
	}
	return nil
}

// Period returns the times of a reservation. from and until are its present times, or
// zero for a new one.
func (w *ReservationRequest) Period(from, until, now time.Time) (start, end time.Time, err error) {
	start, end = w.Start, w.End
	switch starts, ends := !start.IsZero(), !end.IsZero(); {
	case starts && ends && w.Duration > 0 && !start.Add(w.Duration).Equal(end):
		return start, end, invalidTimesError("-R, -E and -D contradict each other")
	case starts && !ends && w.Duration > 0:
		end = start.Add(w.Duration)
	case ends && !starts && w.Duration > 0:
		start = end.Add(-w.Duration)
	case starts && ends:
	case from.IsZero():
		return start, end, invalidTimesError("two of -R, -E and -D are needed")
	case w.Duration > 0:
		start, end = from, from.Add(w.Duration)
	case starts:
		end = until
	case ends:
		start = from
	default:
		start, end = from, until
	}
	switch {
	case !end.After(start):
		return start, end, invalidTimesError("it ends before it begins")
	case !end.After(now), start.Before(now) && !start.Equal(from):
		return start, end, invalidTimesError("it lies in the past")
	}
	return start, end, nil
}

func invalidTimesError(why string) *RefusalError {
	return refusalf("Bad time specification(s): "+why, ExitUsage)
}
