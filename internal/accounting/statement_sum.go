package accounting

import (
	"cmp"
	"slices"
)

// Close computes the grant and the total of a statement from its lines and adjustments.
// grant is what is free for the payer.
func (s *Statement) Close(grant MicroUnits) {
	var lines, adjustments MicroUnits
	for i := range s.Lines {
		lines += s.Lines[i].Amount
	}
	for i := range s.Adjustments {
		adjustments += s.Adjustments[i].Amount
	}
	s.Grant = min(max(grant, 0), max(lines, 0))
	s.Total = lines + adjustments - s.Grant
}

// RoundedStatement has the amounts of a statement in whole multiples of a unit. The lines
// and adjustments less the grant sum to Total, as those of the statement do.
type RoundedStatement struct {
	Lines       []MicroUnits
	Adjustments []MicroUnits
	Grant       MicroUnits
	Total       MicroUnits
}

// Rounded rounds the total to the nearest multiple of unit, and then the amounts. What
// these lack goes to the amounts that lost most. Amounts rounded one by one would not sum
// to the total.
func (s *Statement) Rounded(unit MicroUnits) RoundedStatement {
	amounts := make([]MicroUnits, 0, len(s.Lines)+len(s.Adjustments)+1)
	for i := range s.Lines {
		amounts = append(amounts, s.Lines[i].Amount)
	}
	for i := range s.Adjustments {
		amounts = append(amounts, s.Adjustments[i].Amount)
	}
	amounts = append(amounts, -s.Grant)
	rounded, total := roundAll(amounts, unit)
	n := len(s.Lines)
	return RoundedStatement{
		Lines: rounded[:n:n], Adjustments: rounded[n : len(rounded)-1 : len(rounded)-1],
		Grant: -rounded[len(rounded)-1], Total: total,
	}
}

// roundAll rounds amounts by the method of the largest remainder.
func roundAll(amounts []MicroUnits, unit MicroUnits) (rounded []MicroUnits, total MicroUnits) {
	unit = max(unit, 1)
	rounded = make([]MicroUnits, len(amounts))
	order := make([]int, len(amounts))
	var exact, sum MicroUnits
	for i, a := range amounts {
		exact += a
		rounded[i] = floorAmount(a, unit)
		sum += rounded[i]
		order[i] = i
	}
	total = floorAmount(exact+unit/2, unit)
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(amounts[b]-rounded[b], amounts[a]-rounded[a])
	})
	for i := 0; sum < total; i++ {
		rounded[order[i]] += unit
		sum += unit
	}
	return rounded, total
}

func floorAmount(a, unit MicroUnits) MicroUnits {
	rest := a % unit
	if rest < 0 {
		rest += unit
	}
	return a - rest
}
