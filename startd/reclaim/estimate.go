package reclaim

import (
	"math"
	"time"

	"github.com/roost-batch/roost"
)

// ResourceAmount is an amount of the reclaimable resources: CPU time and memory.
type ResourceAmount struct {
	CPU    roost.MilliCPU
	Memory roost.Bytes
}

// AmountOf returns the reclaimable part of a vector.
func AmountOf(r roost.Resources) ResourceAmount { return ResourceAmount{r.CPU, r.Memory} }

// Add returns a + b.
func (a ResourceAmount) Add(b ResourceAmount) ResourceAmount {
	return ResourceAmount{a.CPU + b.CPU, a.Memory + b.Memory}
}

// Sub returns a - b, which may be negative.
func (a ResourceAmount) Sub(b ResourceAmount) ResourceAmount {
	return ResourceAmount{a.CPU - b.CPU, a.Memory - b.Memory}
}

// UsageEstimate is the reservation of one task, which follows its use. NewEstimate
// creates it.
type UsageEstimate struct {
	limit  ResourceAmount
	began  time.Duration // start time of the task
	last   time.Duration // time of the last sample
	cpu    float64       // reserved millicores; fractions are kept, as the decay between two samples is small
	memory float64
}

// NewEstimate returns the estimate of a task that has just begun: its limit is reserved.
// Now and later times are readings of one clock.
func NewEstimate(now time.Duration, limit ResourceAmount) UsageEstimate {
	return UsageEstimate{limit: limit, began: now, last: now, cpu: float64(limit.CPU), memory: float64(limit.Memory)}
}

// ResumedEstimate returns the estimate of a task that was running before the startd
// started. Only its use is known, and its reservation is the value to which it would have
// decayed. With the limit as the reservation, a restart would evict all tasks on
// reclaimed resources.
func ResumedEstimate(now time.Duration, limit, use ResourceAmount, p EstimateParams) UsageEstimate {
	e := UsageEstimate{limit: limit, began: now - p.SettlingTime, last: now}
	e.cpu, e.memory = targetEstimate(float64(use.CPU), float64(limit.CPU), p),
		targetEstimate(float64(use.Memory), float64(limit.Memory), p)
	return e
}

// Reserved returns the reservation after the last sample.
func (e *UsageEstimate) Reserved() ResourceAmount {
	return ResourceAmount{roost.MilliCPU(math.Ceil(e.cpu)), roost.Bytes(math.Ceil(e.memory))}
}

// Limit returns what the task may use.
func (e *UsageEstimate) Limit() ResourceAmount { return e.limit }

// Sample updates the estimate with the current use. A sample older than the last can only
// raise it.
func (e *UsageEstimate) Sample(now time.Duration, use ResourceAmount, p EstimateParams) {
	left := 1.0 // remaining part of the distance to the target
	if since := now - max(e.last, e.began+p.SettlingTime); since > 0 && p.HalfLife > 0 {
		left = math.Exp2(-since.Seconds() / p.HalfLife.Seconds())
	}
	e.cpu = decayTowards(e.cpu, targetEstimate(float64(use.CPU), float64(e.limit.CPU), p), left)
	e.memory = decayTowards(e.memory, targetEstimate(float64(use.Memory), float64(e.limit.Memory), p), left)
	e.last = max(e.last, now)
}

// targetEstimate returns the final reservation of a task with a steady use.
func targetEstimate(use, limit float64, p EstimateParams) float64 {
	return max(min(use*(1+p.Margin)+limit*p.Floor, limit), 0)
}

// decayTowards decreases to aim until a part of the distance is left. It increases to aim
// at once.
func decayTowards(from, aim, left float64) float64 {
	if from <= aim {
		return aim
	}
	return aim + (from-aim)*left
}
