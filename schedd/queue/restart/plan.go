package restart

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"github.com/roost-batch/roost"
)

// StableTime is the life after which a task is started again at once. After that time as
// ready its waits begin anew, too.
const StableTime = 10 * time.Minute

// maxClaimWait is the longest wait for which a claim is not given back. Its machine could
// run others meanwhile.
const maxClaimWait = time.Minute

// Policy is what a job says of its restarts.
type Policy struct {
	First, Max time.Duration // the first wait and the longest one
	Restarts   int           // the most on one machine within Window
	Window     time.Duration
}

// History is what went before. Times are unix nanoseconds.
type History struct {
	EarlyEnds int     // in a row, as far as waits go
	Recent    []int64 // restarts on the present machine within the window
}

// TaskEnd is the end of an attempt. Times are unix nanoseconds.
type TaskEnd struct {
	Job        uint64
	Index      int
	Attempt    roost.AttemptNumber
	Started    int64 // 0: its processes never ran
	ReadySince int64 // 0: it was not ready when it ended
	Ended      int64
	ByMachine  bool // the machine spoiled it
}

// Plan is what follows from an end.
type Plan struct {
	History
	Wait        time.Duration
	SameMachine bool // on the same claim
}

// Next returns when and where a task is started again.
func Next(p Policy, h History, e TaskEnd) Plan {
	n := Plan{History: History{EarlyEnds: h.EarlyEnds}}
	if e.ReadySince != 0 && time.Duration(e.Ended-e.ReadySince) >= StableTime {
		n.EarlyEnds = 0
	}
	if e.Started == 0 || time.Duration(e.Ended-e.Started) < StableTime {
		n.EarlyEnds++
		n.Wait = p.wait(n.EarlyEnds, e)
	}
	if n.Recent = within(h.Recent, e.Ended-int64(p.Window)); len(n.Recent) >= p.Restarts || e.ByMachine ||
		n.Wait > maxClaimWait {
		n.Recent = nil
		return n
	}
	n.Recent, n.SameMachine = append(n.Recent, e.Ended), true
	return n
}

// wait is the wait after so many early ends. Up to a quarter of it is taken off, so that
// tasks that ended together do not start together.
func (p Policy) wait(ends int, e TaskEnd) time.Duration {
	full := p.FullWait(ends)
	return full - time.Duration(float64(full)/4*e.fraction())
}

// FullWait is the wait after so many early ends before a part of it is taken off.
func (p Policy) FullWait(ends int) time.Duration {
	full := p.First
	for ; ends > 1 && full < p.Max; ends-- {
		full *= 2
	}
	return min(full, p.Max)
}

// fraction is a number from 0 up to 1 that depends on the attempt alone.
func (e TaskEnd) fraction() float64 {
	h := fnv.New64a()
	var b [24]byte
	binary.LittleEndian.PutUint64(b[:], e.Job)
	binary.LittleEndian.PutUint64(b[8:], uint64(e.Index))
	binary.LittleEndian.PutUint64(b[16:], uint64(e.Attempt))
	h.Write(b[:])
	return float64(h.Sum64()>>11) / (1 << 53)
}

// within returns the times after a limit, in a slice of their own.
func within(times []int64, limit int64) (recent []int64) {
	for _, t := range times {
		if t > limit {
			recent = append(recent, t)
		}
	}
	return recent
}
