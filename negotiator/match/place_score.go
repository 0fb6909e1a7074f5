package match

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// ScorePolicy says which of the machines that suit a request equally well a unit of it
// goes to. What stands above it in the order (see the package's comment) it does not
// touch.
type ScorePolicy uint8

// The scores. The first is the one to use; the others are there to be compared with it in
// simulations: no setting of a cell chooses one.
const (
	// what would be stranded or become useless, and a little by best fit: see [score] and
	// [fragmentScore]
	Hybrid   ScorePolicy = iota
	BestFit              // where the least is left, in whole hundredths of the largest machine
	WorstFit             // where the greatest part is left
	// fragmentation gradient descent as published (Weng et al., ATC 2023, §4.3): see
	// [descent]
	Fragmentation
)

// scoreNames are the scores' names, in their order.
func scoreNames() []string { return []string{"hybrid", "best-fit", "worst-fit", "fragmentation"} }

func (s ScorePolicy) String() string {
	if names := scoreNames(); int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("score %d", uint8(s))
}

// ParseScore reads the name of a score; none is Hybrid. The error wraps [roost.Invalid].
func ParseScore(text string) (ScorePolicy, error) {
	if text == "" {
		return Hybrid, nil
	}
	if i := slices.Index(scoreNames(), text); i >= 0 {
		return ScorePolicy(i), nil
	}
	return Hybrid, fmt.Errorf("%q is not a score: %w: use %s", text, roost.Invalid, strings.Join(scoreNames(), ", "))
}

// spreadsUnits reports whether a unit more makes a machine a worse place for the next:
// then each looks for its place by itself.
func (s ScorePolicy) spreadsUnits() bool { return s == WorstFit }

// scoreWithoutGPUs scores a unit on a machine without GPUs, of which so much is free.
func (s ScorePolicy) scoreWithoutGPUs(unit, free, total, largest roost.Resources) float64 {
	if s == BestFit || s == WorstFit {
		return s.fitScore(free.Sub(unit), total, 0, largest)
	}
	return balanceScore(unit, free, total)
}

// scoreWithGPUs scores a unit on a machine with GPUs, of which it makes so much more
// useless and leaves so much of so much; idle is what it leaves of GPUs.
func (s ScorePolicy) scoreWithGPUs(unit roost.Resources, more int64, left, total roost.Resources, idle int64,
	largest roost.Resources) float64 {
	switch s {
	case BestFit, WorstFit:
		return s.fitScore(left, total, idle, largest)
	case Fragmentation:
		return gradientScore(more)
	}
	return fragmentScore(unit, more, left.CPU, idle, largest)
}

// usesFragmentation reports whether a score looks at what GPUs are good for, and not only
// at how much of them is left.
func (s ScorePolicy) usesFragmentation() bool { return s != BestFit && s != WorstFit }

// fitScore is the score of [BestFit] and [WorstFit] where so much would be left of so
// much, idle of it of GPUs, in [gpu.SharesPerGPU]: the mean of processor time and GPUs,
// of processor time and memory where no machine has GPUs.
//
// Best fit counts parts of what the largest machines have, in whole hundredths, as in the
// published comparison (ibid., §6): of places that are about as full the first is taken,
// and not the one that a core more or less makes the fullest. Worst fit counts parts of
// the machine itself, as those do that spread load over machines of different sizes (Borg
// §3.2 on E-PVM).
func (s ScorePolicy) fitScore(left, total roost.Resources, idle int64, largest roost.Resources) float64 {
	of := largest
	if s == WorstFit {
		of = total
	}
	part := float64(left.CPU) / float64(max(of.CPU, 1))
	if largest.GPUs > 0 {
		part += float64(idle) / float64(max(of.GPUs, 1)*gpu.SharesPerGPU)
	} else {
		part += float64(left.Memory) / float64(max(of.Memory, 1))
	}
	if s == WorstFit {
		return -part / 2
	}
	return -math.Floor((1 - part/2) * 100)
}

// gradientScore is the score of [Fragmentation]: by how much more of a machine's idle
// GPUs becomes useless to the mix, pressed into 0 to 100 as published. Most of what made
// that scheduler good is that it counts in whole numbers and takes the first of equals,
// so that machines fill up one after the other.
func gradientScore(more int64) float64 {
	const device = gpu.SharesPerGPU * gpu.MixWeight
	return -math.Floor(100 / (1 + math.Exp(float64(more)/device)))
}
