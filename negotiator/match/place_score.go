package match

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// ScorePolicy chooses among the machines that are otherwise equally good for a unit. What
// comes before the score in the order (see the package's comment) is unaffected.
type ScorePolicy uint8

// The scores. Hybrid is the default; the setting score of a cell selects another.
const (
	// stranded or useless resources, and a little best fit: see [balanceScore] and
	// [fragmentScore]
	Hybrid   ScorePolicy = iota
	BestFit              // the least left, in whole hundredths of the largest machine
	WorstFit             // the greatest part left
	// fragmentation gradient descent as published (Weng et al., ATC 2023, §4.3): see
	// [gradientScore]
	Fragmentation
	// the machine whose cores are busiest last, as LoadLeveler and NEST choose: see
	// [siteScorer.loadScore]
	LeastLoaded
)

// scoreNames returns the names of the scores, in their order.
func scoreNames() []string {
	return []string{"hybrid", "best-fit", "worst-fit", "fragmentation", "least-loaded"}
}

func (s ScorePolicy) String() string {
	if names := scoreNames(); int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("score %d", uint8(s))
}

// ParseScore reads the name of a score; empty is Hybrid. The error wraps [roost.Invalid].
func ParseScore(text string) (ScorePolicy, error) {
	if text == "" {
		return Hybrid, nil
	}
	if i := slices.Index(scoreNames(), text); i >= 0 {
		return ScorePolicy(i), nil
	}
	return Hybrid, fmt.Errorf("%q is not a score: %w: use %s", text, roost.Invalid, strings.Join(scoreNames(), ", "))
}

// spreadsUnits reports whether placing a unit makes a machine worse for the next one.
// Then each unit is placed separately.
func (s ScorePolicy) spreadsUnits() bool { return s == WorstFit || s == LeastLoaded }

// scoreWithoutGPUs scores a unit on a machine without GPUs; lower is better.
func (s ScorePolicy) scoreWithoutGPUs(unit, free, total, largest roost.Resources) float64 {
	if s == BestFit || s == WorstFit {
		return s.fitScore(free.Sub(unit), total, 0, largest)
	}
	return balanceScore(unit, free, total)
}

// scoreWithGPUs scores a unit on a machine with GPUs. The unit makes more units of the
// GPUs useless and leaves left and idle free; idle counts GPUs in [gpu.SharesPerGPU].
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

// usesFragmentation reports whether a score depends on fragmentation and not only on what
// is left.
func (s ScorePolicy) usesFragmentation() bool { return s != BestFit && s != WorstFit }

// fitScore returns the score of [BestFit] and [WorstFit] from what a placement leaves. It
// is the mean of CPU and GPUs, or of CPU and memory where no machine has GPUs; idle
// counts GPUs in [gpu.SharesPerGPU].
//
// Best fit counts parts of the largest machine, in whole hundredths, as in the published
// comparison (ibid., §6). So of machines that are about as full the first is taken, and
// one core more or less makes no difference. Worst fit counts parts of the machine
// itself, as schedulers do that spread load over machines of different sizes (Borg §3.2
// on E-PVM).
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

// gradientScore returns the score of [Fragmentation]. It maps how many more idle GPUs
// become useless to the mix into 0 to 100, as published. That scheduler is good mostly
// because it counts in whole numbers and takes the first of equals, so that machines fill
// up one after the other.
func gradientScore(more int64) float64 {
	const device = gpu.SharesPerGPU * gpu.MixWeight
	return -math.Floor(100 / (1 + math.Exp(float64(more)/device)))
}
