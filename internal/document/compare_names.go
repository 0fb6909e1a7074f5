package document

import "strconv"

// CompareNames orders names so that n2 comes before n10.
func CompareNames(a, b string) int {
	for a != "" && b != "" {
		da, db := LeadingDigits(a), LeadingDigits(b)
		if da > 0 && db > 0 {
			x, _ := strconv.ParseUint(a[:min(da, 18)], 10, 64)
			y, _ := strconv.ParseUint(b[:min(db, 18)], 10, 64)
			if x != y {
				if x < y {
					return -1
				}
				return 1
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

// LeadingDigits counts the digits at the beginning of a text.
func LeadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
