package packing

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/roost-batch/roost/negotiator/match"
)

// StudyResult is what a study found out about one way of running a cell.
type StudyResult struct {
	Machines []int // that hold the work, by seed
	Waiting  int   // picky tasks without a place, at most
	Copies   int   // of the cell to begin with
	Packings int
}

// Digest is of all that a line says: two runs with the same are the same.
func (l *StudyResult) Digest() uint64 {
	h := fnv.New64a()
	for _, n := range append([]int{l.Waiting, l.Copies, l.Packings}, l.Machines...) {
		var what [8]byte
		binary.LittleEndian.PutUint64(what[:], uint64(n))
		h.Write(what[:])
	}
	return h.Sum64()
}

// Study compacts a cell, or the cells that it is parted into, which each begin with all
// its machines, once for each seed, and adds up what they need. The seeds are the same
// for whatever is compared, and so are the machines that go first as far as there are as
// many. The error is that of [CellCompaction.GrowToFit].
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

// ArrangementCost is a way of running a cell that takes machines.
type ArrangementCost uint8

// The costs, in the order of Borg §5.2 to §5.5.
const (
	SegregatedProd     ArrangementCost = iota // production and the rest in cells of their own
	CellPerUser                               // a cell for each user
	PowersOfTwo                               // sizes in powers of two
	WithoutReclamation                        // nothing lent of what production leaves
)

// AllCosts are all of them.
func AllCosts() []ArrangementCost {
	return []ArrangementCost{SegregatedProd, CellPerUser, PowersOfTwo, WithoutReclamation}
}

func (k ArrangementCost) String() string {
	return [...]string{"production apart", "each user apart", "powers of two", "nothing reclaimed"}[k]
}

// ReservationModel is how much of what it asks for production is taken to use, margin
// included, where nobody knows: from and to, in per cent.
type ReservationModel struct{ Min, Max int }

// Study studies a way of running a cell, beside how it would be without: usual is what
// the cell needs as it is, worked out already for the same seeds.
func (k ArrangementCost) Study(c *CellWorkload, by match.ScorePolicy, usual StudyResult, use ReservationModel,
	seeds int, random func(seed int) RandomSource) (with, without StudyResult, err error) {
	// What is drawn once for all seeds is drawn from one of its own.
	const aside = -1
	how := CellCompaction{Score: by, Copies: usual.Copies}
	switch k {
	case SegregatedProd:
		with, err = Study(c.SplitByProd(), how, seeds, random)
	case CellPerUser:
		with, err = Study(c.SplitByUser(random(aside)), how, seeds, random)
	case PowersOfTwo:
		var rounded *CellWorkload
		if rounded, err = c.RoundUpSizes(); err == nil {
			with, err = Study([]*CellWorkload{rounded}, how, seeds, random)
		}
	case WithoutReclamation: // beside a cell that reclaims, packed in the same way
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
