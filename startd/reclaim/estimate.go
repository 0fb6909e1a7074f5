package reclaim

import (
	"math"
	"time"

	"github.com/roost-batch/roost"
)

// ResourceAmount is what can be reclaimed: processor time and memory.
type ResourceAmount struct {
	CPU    roost.MilliCPU
	Memory roost.Bytes
}

// AmountOf is the part of a vector that can be reclaimed.
func AmountOf(r roost.Resources) ResourceAmount { return ResourceAmount{r.CPU, r.Memory} }

// Add and Sub are by component.
func (a ResourceAmount) Add(b ResourceAmount) ResourceAmount {
	return ResourceAmount{a.CPU + b.CPU, a.Memory + b.Memory}
}

// Sub is a - b, which may be negative.
func (a ResourceAmount) Sub(b ResourceAmount) ResourceAmount {
	return ResourceAmount{a.CPU - b.CPU, a.Memory - b.Memory}
}

// UsageEstimate is the reservation of one task as it follows its use. It begins with
// NewEstimate.
type UsageEstimate struct {
	limit  ResourceAmount
	began  time.Duration // of the task
	last   time.Duration // sample
	cpu    float64       // reserved: less than a thousandth of a core, or a byte, is decayed between two samples
	memory float64
}

// NewEstimate is the estimate of a task that has just begun: it may use its limit, and
// that is reserved. Now and later times are readings of one clock.
func NewEstimate(now time.Duration, limit ResourceAmount) UsageEstimate {
	return UsageEstimate{limit: limit, began: now, last: now, cpu: float64(limit.CPU), memory: float64(limit.Memory)}
}

// ResumedEstimate is the estimate of a task that was here before its machine's startd, of
// which nothing is known but its use: its reservation is where it would have come to.
// Were it the limit again, a restart would end all that runs in reclaimed room.
func ResumedEstimate(now time.Duration, limit, use ResourceAmount, p EstimateParams) UsageEstimate {
	e := UsageEstimate{limit: limit, began: now - p.SettlingTime, last: now}
	e.cpu, e.memory = targetEstimate(float64(use.CPU), float64(limit.CPU), p),
		targetEstimate(float64(use.Memory), float64(limit.Memory), p)
	return e
}

// Reserved is the reservation after the last sample.
func (e *UsageEstimate) Reserved() ResourceAmount {
	return ResourceAmount{roost.MilliCPU(math.Ceil(e.cpu)), roost.Bytes(math.Ceil(e.memory))}
}

// Limit is what the task may use.
func (e *UsageEstimate) Limit() ResourceAmount { return e.limit }

// Sample takes in what the task uses now. A sample that is older than the last changes
// nothing but what it raises.
func (e *UsageEstimate) Sample(now time.Duration, use ResourceAmount, p EstimateParams) {
	left := 1.0 // of the distance to the aim
	if since := now - max(e.last, e.began+p.SettlingTime); since > 0 && p.HalfLife > 0 {
		left = math.Exp2(-since.Seconds() / p.HalfLife.Seconds())
	}
	e.cpu = decayTowards(e.cpu, targetEstimate(float64(use.CPU), float64(e.limit.CPU), p), left)
	e.memory = decayTowards(e.memory, targetEstimate(float64(use.Memory), float64(e.limit.Memory), p), left)
	e.last = max(e.last, now)
}

// targetEstimate is where the reservation of a task with a steady use comes to rest.
func targetEstimate(use, limit float64, p EstimateParams) float64 {
	return max(min(use*(1+p.Margin)+limit*p.Floor, limit), 0)
}

// decayTowards goes down to the aim until that part of the distance is left, and up to it
// at once.
func decayTowards(from, aim, left float64) float64 {
	if from <= aim {
		return aim
	}
	return aim + (from-aim)*left
}
