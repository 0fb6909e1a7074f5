package fairshare

// DivideUnits divides q units among jobs that want wants[i] each, as HRM divides GPUs
// among its batch jobs (§4.5). Each of K jobs first gets min(⌊q/K⌋, N_j). The rest is
// divided evenly among those that want more, until nothing is left or wanted. So the sum
// is min(q, Σ N_j). If fewer units are left than jobs want some, the first jobs get one
// each. Negative numbers count as 0.
func DivideUnits(q int64, wants []int64) []int64 {
	got := make([]int64, len(wants))
	open := make([]int, 0, len(wants))
	for i, n := range wants {
		if n > 0 {
			open = append(open, i)
		}
	}
	for left := max(q, 0); left > 0 && len(open) > 0; {
		each := left / int64(len(open))
		if each == 0 {
			for _, i := range open[:left] {
				got[i]++
			}
			break
		}
		rest := open[:0]
		for _, i := range open {
			n := min(each, wants[i]-got[i])
			got[i] += n
			left -= n
			if got[i] < wants[i] {
				rest = append(rest, i)
			}
		}
		open = rest
	}
	return got
}
