package accounting

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/roost-batch/roost"
)

// RateTable finds the rate of a group at a time.
type RateTable struct {
	rates []Rate // in the order of From, then ID
}

// NewRateTable returns a table of the rates.
func NewRateTable(rates []Rate) RateTable {
	sorted := slices.Clone(rates)
	slices.SortFunc(sorted, func(a, b Rate) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.ID, b.ID))
	})
	return RateTable{sorted}
}

// At returns the rate of a group at a time, or nil. Of the rates that are valid then, the
// one of the closest group counts, and of these the latest.
func (t RateTable) At(group string, at Millis) *Rate {
	var best *Rate
	for i := range t.rates {
		r := &t.rates[i]
		if r.From > at {
			break
		}
		if r.Group != "" && !InGroup(group, r.Group) {
			continue
		}
		if best == nil || len(r.Group) >= len(best.Group) {
			best = r
		}
	}
	return best
}

// ChargePart is what a part of an attempt costs that ran in one month at one rate.
type ChargePart struct {
	Month    Month
	RateID   int64
	Time     int64 // milliseconds that are charged
	CoreTime int64 // core-milliseconds that are charged
	Amount   MicroUnits
}

// Charges returns what an attempt that has ended costs, by month and rate. Time for which
// it was suspended costs nothing.
func (t RateTable) Charges(a *AttemptEntry, j *JobEntry) []ChargePart {
	if a.Ended == 0 || !a.Cause.IsCharged() {
		return nil
	}
	var charges []ChargePart
	for _, p := range a.timeParts(a.Ended) {
		for begin := p.from; ; {
			end := min(p.to, MonthOf(begin).End(), t.nextChange(begin, p.to))
			if rate := t.At(j.Group, begin); rate != nil {
				time := share(p.wall-p.suspended, p.from, p.to, begin, end)
				if rate.UsefulOnly && a.Wall > 0 {
					time = mulDiv(time, min(max(a.Useful, 0), a.Wall), a.Wall)
				}
				charges = addCharge(charges, ChargePart{
					Month: MonthOf(begin), RateID: rate.ID, Time: time,
					CoreTime: mulDiv(time, int64(p.held.CPU), 1000),
					Amount:   rate.price(p.held, j.Band, a.Class, time),
				})
			}
			if begin = end; begin >= p.to {
				break
			}
		}
	}
	return charges
}

// addCharge adds a part to the charge of the same month and rate.
func addCharge(charges []ChargePart, c ChargePart) []ChargePart {
	if c.Time == 0 && c.Amount == 0 {
		return charges
	}
	for i := range charges {
		if charges[i].Month == c.Month && charges[i].RateID == c.RateID {
			charges[i].Time += c.Time
			charges[i].CoreTime += c.CoreTime
			charges[i].Amount += c.Amount
			return charges
		}
	}
	return append(charges, c)
}

// nextChange returns the first time after begin at which a rate begins, or end.
func (t RateTable) nextChange(begin, end Millis) Millis {
	i, _ := slices.BinarySearchFunc(t.rates, begin+1, func(r Rate, at Millis) int { return cmp.Compare(r.From, at) })
	if i < len(t.rates) {
		return min(t.rates[i].From, end)
	}
	return end
}

// price returns what resources cost for a time in milliseconds, rounded to the nearest
// micro-unit. All factors are integers, so each machine computes the same.
func (r *Rate) price(held roost.Resources, band roost.PriorityBand, class string, time int64) MicroUnits {
	n := r.hourPrice(held)
	for _, factor := range []int64{r.bandFactor(band), r.classFactor(class), time} {
		n.Mul(n, big.NewInt(factor))
	}
	d := big.NewInt(priceUnit)
	d.Mul(d, big.NewInt(1000*1000*int64(HourMillis)))
	n.Add(n, new(big.Int).Rsh(d, 1)) // rounds to the nearest
	n.Quo(n, d)
	if !n.IsInt64() {
		return MicroUnits(1<<63 - 1)
	}
	return MicroUnits(n.Int64())
}

// priceUnit is the denominator of hourPrice: milli-CPUs and bytes of a GiB.
const priceUnit = 1000 * int64(roost.GiB)

// hourPrice returns the price of an hour in micro-units / priceUnit.
func (r *Rate) hourPrice(held roost.Resources) *big.Int {
	product := func(price MicroUnits, amount, unit int64) *big.Int {
		n := big.NewInt(int64(price))
		return n.Mul(n, big.NewInt(amount)).Mul(n, big.NewInt(unit))
	}
	gpus := r.milliGPUs(held)
	if r.Rule == RateDominant {
		cpu := int64(held.CPU)
		if r.Mem > 0 {
			cpu = max(cpu, mulDiv(int64(held.Memory), int64(r.Core), int64(r.Mem)))
		}
		if r.GPUs > 0 {
			cpu = max(cpu, mulDiv(gpus, int64(r.Core), 1000*int64(r.GPUs)))
		}
		return product(r.CoreHour, cpu, int64(roost.GiB))
	}
	core := product(r.CoreHour, int64(held.CPU), int64(roost.GiB))
	mem := product(r.GiBHour, int64(held.Memory), 1000)
	gpu := product(r.GPUHour, gpus, int64(roost.GiB))
	if r.Rule == RateMax {
		return slices.MaxFunc([]*big.Int{core, mem, gpu}, (*big.Int).Cmp)
	}
	return core.Add(core, mem).Add(core, gpu)
}

// milliGPUs returns the GPUs that resources hold in thousandths. A share of a GPU is what
// it takes of the GPU's memory.
func (r *Rate) milliGPUs(held roost.Resources) int64 {
	whole := int64(held.GPUs) * 1000
	if r.GPUMem <= 0 || held.GPUMemory <= 0 {
		return whole
	}
	return min(mulDiv(whole, int64(held.GPUMemory), int64(r.GPUMem)), whole)
}

func (r *Rate) bandFactor(b roost.PriorityBand) int64 {
	if int(b) < len(r.BandPermille) {
		return r.BandPermille[b]
	}
	return 1000
}

func (r *Rate) classFactor(class string) int64 {
	if f, ok := r.ClassPermille[class]; ok {
		return f
	}
	return 1000
}

// maxPrice bounds the prices and factors of a rate.
const maxPrice = 1_000_000_000_000

// Check returns what is wrong with a rate.
func (r *Rate) Check() error {
	fail := func(text string) error { return fmt.Errorf("rate: %w: %s", roost.Invalid, text) }
	if r.Rule < RateDominant || r.Rule > RateMax {
		return fail("the rule is dominant, sum or max")
	}
	if r.Rule == RateDominant && r.Core <= 0 {
		return fail("a dominant share needs the cores of the machine that it is a share of")
	}
	if r.Core < 0 || r.Mem < 0 || r.GPUs < 0 || r.GPUMem < 0 {
		return fail("the resources of the machine are negative")
	}
	factors := append([]int64{int64(r.CoreHour), int64(r.GiBHour), int64(r.GPUHour), int64(r.MonthlyGrant)},
		r.BandPermille[:]...)
	for _, f := range r.ClassPermille {
		factors = append(factors, f)
	}
	for _, f := range factors {
		if f < 0 || f > maxPrice {
			return fail(fmt.Sprintf("prices, factors and the grant are from 0 to %d", maxPrice))
		}
	}
	return nil
}
