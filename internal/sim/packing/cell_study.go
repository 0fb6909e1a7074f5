package packing

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/roost-batch/roost/negotiator/match"
)

// StudyResult is the result of a study of one arrangement.
type StudyResult struct {
	Machines []int // machines that hold the work, by seed
	Waiting  int   // the most picky tasks that were left waiting
	Copies   int   // the most copies of a cell that it began with
	Packings int
}

// Digest returns a digest of the result: equal digests mean equal runs.
func (l *StudyResult) Digest() uint64 {
	h := fnv.New64a()
	for _, n := range append([]int{l.Waiting, l.Copies, l.Packings}, l.Machines...) {
		var what [8]byte
		binary.LittleEndian.PutUint64(what[:], uint64(n))
		h.Write(what[:])
	}
	return h.Sum64()
}

// Study compacts one or more cells once for each seed, and adds up the machines that they
// need. Each cell begins with all machines of the cell that it was split from. The seeds
// are the same for all arrangements, so as far as possible the same machines are removed
// first. The error is that of [CellCompaction.GrowToFit].
func Study(cells []*CellWorkload, c CellCompaction, seeds int,
	random func(seed int) RandomSource) (StudyResult, error) {
	line := StudyResult{Machines: make([]int, seeds), Copies: 1}
	for _, cell := range cells {
		one := c
		one.CellWorkload = cell
		if err := one.GrowToFit(); err != nil {
			return line, err
		}
		line.Copies = max(line.Copies, one.Copies)
		for seed := range seeds {
			out := one.Run(random(seed))
			line.Machines[seed] += out.Machines
			line.Waiting, line.Packings = max(line.Waiting, out.Waiting), line.Packings+out.Packings
		}
	}
	return line, nil
}

// ArrangementCost is a way to run a cell that costs machines.
type ArrangementCost uint8

// The arrangements, in the order of Borg §5.2 to §5.5.
const (
	SegregatedProd  ArrangementCost = iota // production and the rest in separate cells
	CellPerUser                            // a cell for each user
	LargeUsersApart                        // a cell for each user with at least LargeUserPercent of the work
	DividedIn2                             // the tasks of each kind divided among two cells
	DividedIn5
	DividedIn10
	PowersOfTwo        // sizes in powers of two
	WithoutReclamation // what production leaves unused is not offered
)

// AllCosts returns all arrangements.
func AllCosts() []ArrangementCost {
	return []ArrangementCost{SegregatedProd, CellPerUser, LargeUsersApart, DividedIn2, DividedIn5, DividedIn10,
		PowersOfTwo, WithoutReclamation}
}

func (k ArrangementCost) String() string {
	return [...]string{"production apart", "each user apart", "large users apart", "two cells", "five cells",
		"ten cells", "powers of two", "nothing reclaimed"}[k]
}

// ReservationModel is the assumed use of production, with its margin. It is a range in
// percent of what a task asks for, and serves where the use is unknown.
type ReservationModel struct{ Min, Max int }

// Study studies an arrangement and compares it with the cell as it is. usual is the
// result of the cell as it is, for the same seeds.
func (k ArrangementCost) Study(c *CellWorkload, by match.ScorePolicy, usual StudyResult, use ReservationModel,
	seeds int, random func(seed int) RandomSource) (with, without StudyResult, err error) {
	// The stream for what is drawn once for all seeds.
	const aside = -1
	how := CellCompaction{Score: by, Copies: usual.Copies}
	switch k {
	case SegregatedProd:
		with, err = Study(c.SplitByProd(), how, seeds, random)
	case CellPerUser:
		with, err = Study(c.SplitByUser(random(aside), 0), how, seeds, random)
	case LargeUsersApart:
		with, err = Study(c.SplitByUser(random(aside), LargeUserPercent), how, seeds, random)
	case DividedIn2, DividedIn5, DividedIn10:
		parts := map[ArrangementCost]int{DividedIn2: 2, DividedIn5: 5, DividedIn10: 10}[k]
		with, err = Study(c.Divide(parts), how, seeds, random)
	case PowersOfTwo:
		var rounded *CellWorkload
		if rounded, err = c.RoundUpSizes(); err == nil {
			with, err = Study([]*CellWorkload{rounded}, how, seeds, random)
		}
	case WithoutReclamation: // compared with a cell that reclaims and is packed in the same way
		reclaiming := c.withWork(c.Requests)
		reclaiming.SetReserved(use.Min, use.Max, random(aside))
		if with, err = Study([]*CellWorkload{reclaiming}, how, seeds, random); err != nil {
			return with, without, err
		}
		how.Reclaiming = true
		without, err = Study([]*CellWorkload{reclaiming}, how, seeds, random)
		return with, without, err
	}
	return with, usual, err
}
