package reclaim

import (
	"math"
	"time"

	"github.com/roost-batch/roost"
)

// Amount is what can be reclaimed: processor time and memory.
type Amount struct {
	CPU    roost.MilliCPU
	Memory roost.Bytes
}

// Of is the part of a vector that can be reclaimed.
func Of(r roost.Resources) Amount { return Amount{r.CPU, r.Memory} }

// Add and Sub are by component.
func (a Amount) Add(b Amount) Amount { return Amount{a.CPU + b.CPU, a.Memory + b.Memory} }

// Sub is a - b, which may be negative.
func (a Amount) Sub(b Amount) Amount { return Amount{a.CPU - b.CPU, a.Memory - b.Memory} }

// Estimate is the reservation of one task as it follows its use. It begins with New.
type Estimate struct {
	limit  Amount
	began  time.Duration // of the task
	last   time.Duration // sample
	cpu    float64       // reserved: less than a thousandth of a core, or a byte, is decayed between two samples
	memory float64
}

// New is the estimate of a task that has just begun: it may use its limit, and that is reserved. Now and later times are readings of one clock.
func New(now time.Duration, limit Amount) Estimate {
	return Estimate{limit: limit, began: now, last: now, cpu: float64(limit.CPU), memory: float64(limit.Memory)}
}

// Resumed is the estimate of a task that was here before its machine's startd, of which nothing is known but its use: its reservation is where it
// would have come to. Were it the limit again, a restart would end all that runs in reclaimed room.
func Resumed(now time.Duration, limit, use Amount, p Params) Estimate {
	e := Estimate{limit: limit, began: now - p.Settle, last: now}
	e.cpu, e.memory = aim(float64(use.CPU), float64(limit.CPU), p), aim(float64(use.Memory), float64(limit.Memory), p)
	return e
}

// Reserved is the reservation after the last sample.
func (e *Estimate) Reserved() Amount {
	return Amount{roost.MilliCPU(math.Ceil(e.cpu)), roost.Bytes(math.Ceil(e.memory))}
}

// Limit is what the task may use.
func (e *Estimate) Limit() Amount { return e.limit }

// Sample takes in what the task uses now. A sample that is older than the last changes nothing but what it raises.
func (e *Estimate) Sample(now time.Duration, use Amount, p Params) {
	left := 1.0 // of the distance to the aim
	if since := now - max(e.last, e.began+p.Settle); since > 0 && p.HalfLife > 0 {
		left = math.Exp2(-since.Seconds() / p.HalfLife.Seconds())
	}
	e.cpu = follow(e.cpu, aim(float64(use.CPU), float64(e.limit.CPU), p), left)
	e.memory = follow(e.memory, aim(float64(use.Memory), float64(e.limit.Memory), p), left)
	e.last = max(e.last, now)
}

// aim is where the reservation of a task with a steady use comes to rest.
func aim(use, limit float64, p Params) float64 {
	return max(min(use*(1+p.Margin)+limit*p.Floor, limit), 0)
}

// follow goes down to the aim until that part of the distance is left, and up to it at once.
func follow(from, aim, left float64) float64 {
	if from <= aim {
		return aim
	}
	return aim + (from-aim)*left
}
