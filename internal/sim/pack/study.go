package pack

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/roost-batch/roost/negotiator/match"
)

// Line is what a study found out about one way of running a cell.
type Line struct {
	Machines []int // that hold the work, by seed
	Waiting  int   // picky tasks without a place, at most
	Copies   int   // of the cell to begin with
	Packings int
}

// Digest is of all that a line says: two runs with the same are the same.
func (l *Line) Digest() uint64 {
	h := fnv.New64a()
	for _, n := range append([]int{l.Waiting, l.Copies, l.Packings}, l.Machines...) {
		var what [8]byte
		binary.LittleEndian.PutUint64(what[:], uint64(n))
		h.Write(what[:])
	}
	return h.Sum64()
}

// Study compacts a cell, or the cells that it is parted into, which each begin with all its machines, once for each seed, and adds up what they need. The
// seeds are the same for whatever is compared, and so are the machines that go first as far as there are as many. The error is that of [Compaction.Grow].
func Study(cells []*Cell, c Compaction, seeds int, random func(seed int) Random) (Line, error) {
	line := Line{Machines: make([]int, seeds), Copies: 1}
	for _, cell := range cells {
		one := c
		one.Cell = cell
		if err := one.Grow(); err != nil {
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

// Cost is a way of running a cell that takes machines.
type Cost uint8

// The costs, in the order of Borg §5.2 to §5.5.
const (
	Segregated  Cost = iota // production and the rest in cells of their own
	ByUsers                 // a cell for each user
	PowersOfTwo             // sizes in powers of two
	Unreclaimed             // nothing lent of what production leaves
)

// Costs are all of them.
func Costs() []Cost { return []Cost{Segregated, ByUsers, PowersOfTwo, Unreclaimed} }

func (k Cost) String() string {
	return [...]string{"production apart", "each user apart", "powers of two", "nothing reclaimed"}[k]
}

// Reserving is how much of what it asks for production is taken to use, margin included, where nobody knows: from and to, in per cent.
type Reserving struct{ Least, Most int }

// Price studies a way of running a cell, beside how it would be without: usual is what the cell needs as it is, worked out already for the same seeds.
func (k Cost) Price(c *Cell, by match.Score, usual Line, use Reserving, seeds int, random func(seed int) Random) (with, without Line, err error) {
	// What is drawn once for all seeds is drawn from one of its own.
	const aside = -1
	how := Compaction{Score: by, Copies: usual.Copies}
	switch k {
	case Segregated:
		with, err = Study(c.Segregate(), how, seeds, random)
	case ByUsers:
		with, err = Study(c.ByUser(random(aside)), how, seeds, random)
	case PowersOfTwo:
		var rounded *Cell
		if rounded, err = c.Buckets(); err == nil {
			with, err = Study([]*Cell{rounded}, how, seeds, random)
		}
	case Unreclaimed: // beside a cell that reclaims, packed in the same way
		lending := c.with(c.Requests)
		lending.Reserve(use.Least, use.Most, random(aside))
		if with, err = Study([]*Cell{lending}, how, seeds, random); err != nil {
			return with, without, err
		}
		how.Lending = true
		without, err = Study([]*Cell{lending}, how, seeds, random)
		return with, without, err
	}
	return with, usual, err
}
