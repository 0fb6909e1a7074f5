// Package hostlist reads and writes lists of hosts in the short form of Slurm, such as
// "n[001-010,12],login". A name may have brackets in several places.
package hostlist

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxHosts is how many hosts a list can have. A few characters could stand for billions.
const MaxHosts = 1 << 16

// maxDigits bounds the number at the end of a name, so that it fits 64 bits.
const maxDigits = 18

// errTooLong is the error for a list of more than MaxHosts.
var errTooLong = fmt.Errorf("it has more than %d hosts", MaxHosts)

// Expand returns the hosts of a list in its order. Those that are in it twice come twice.
func Expand(list string) ([]string, error) {
	var hosts []string
	for list != "" {
		word, rest, err := cutWord(list)
		if err != nil {
			return nil, err
		}
		if list = rest; word == "" {
			continue
		}
		more, err := expandWord(word)
		if err != nil {
			return nil, err
		}
		if hosts = append(hosts, more...); len(hosts) > MaxHosts {
			return nil, errTooLong
		}
	}
	return hosts, nil
}

// cutWord cuts a list at its first comma or blank outside of brackets.
func cutWord(list string) (word, rest string, err error) {
	open := false
	for i := range len(list) {
		switch c := list[i]; {
		case c == '[' && open, c == ']' && !open:
			return "", "", fmt.Errorf("%q is in the wrong place", c)
		case c == '[', c == ']':
			open = !open
		case !open && strings.IndexByte(", \t\n", c) >= 0:
			return list[:i], list[i+1:], nil
		}
	}
	if open {
		return "", "", errors.New("a bracket is not closed")
	}
	return list, "", nil
}

// expandWord returns the hosts of a word, whose brackets are in pairs.
func expandWord(word string) ([]string, error) {
	open := strings.IndexByte(word, '[')
	if open < 0 {
		return []string{word}, nil
	}
	end := open + strings.IndexByte(word[open:], ']')
	numbers, err := expandRanges(word[open+1 : end])
	if err != nil {
		return nil, err
	}
	tails, err := expandWord(word[end+1:])
	if err != nil {
		return nil, err
	}
	if len(numbers)*len(tails) > MaxHosts {
		return nil, errTooLong
	}
	hosts := make([]string, 0, len(numbers)*len(tails))
	for _, number := range numbers {
		for _, tail := range tails {
			hosts = append(hosts, word[:open]+number+tail)
		}
	}
	return hosts, nil
}

// expandRanges returns the numbers of "001-010,12".
func expandRanges(text string) ([]string, error) {
	var numbers []string
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, last, ok := parseNumber(low), parseNumber(high), true
		if first < 0 || last < first {
			ok = false
		}
		if !ok {
			return nil, fmt.Errorf("%.40q is no range of numbers", part)
		}
		if last-first >= MaxHosts-int64(len(numbers)) {
			return nil, errTooLong
		}
		for n := first; n <= last; n++ {
			numbers = append(numbers, padded(n, len(low)))
		}
	}
	return numbers, nil
}

// parseNumber reads a number of digits only; -1: it is none.
func parseNumber(digits string) int64 {
	if digits == "" || len(digits) > maxDigits || strings.Trim(digits, "0123456789") != "" {
		return -1
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// padded writes a number with zeros up to a width.
func padded(n int64, width int) string { return fmt.Sprintf("%0*d", width, n) }

// numbered is a host whose name ends with a number.
type numbered struct {
	prefix string
	number int64
	width  int // of the number with leading zeros; 0: it has none
}

// parse takes a name apart; false: it has no number at its end.
func parse(host string) (numbered, bool) {
	prefix := strings.TrimRight(host, "0123456789")
	if digits := len(host) - len(prefix); digits > maxDigits {
		prefix = host[:len(host)-maxDigits]
	}
	digits := host[len(prefix):]
	if prefix == "" || strings.ContainsAny(prefix, "[]") || digits == "" {
		return numbered{}, false
	}
	h := numbered{prefix: prefix, number: parseNumber(digits)}
	if digits[0] == '0' && len(digits) > 1 {
		h.width = len(digits)
	}
	return h, true
}

// fits reports whether a host may stand in the same brackets as those before it.
func (h numbered) fits(width int) bool {
	return h.width == width || h.width == 0 && len(strconv.FormatInt(h.number, 10)) == width
}

// Compress writes hosts in the short form, in their order. Only hosts beside each other
// come together, so Expand returns the same ones.
func Compress(hosts []string) string {
	var b strings.Builder
	for len(hosts) > 0 {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		n := writeGroup(&b, hosts)
		hosts = hosts[n:]
	}
	return b.String()
}

// writeGroup writes the first hosts that share a prefix, and returns how many they are.
func writeGroup(b *strings.Builder, hosts []string) int {
	first, ok := parse(hosts[0])
	if !ok {
		b.WriteString(hosts[0])
		return 1
	}
	group := []numbered{first}
	for _, host := range hosts[1:] {
		h, ok := parse(host)
		if !ok || h.prefix != first.prefix {
			break
		}
		group = append(group, h)
	}
	if len(group) == 1 {
		b.WriteString(hosts[0])
		return 1
	}
	b.WriteString(first.prefix + "[")
	for i := 0; i < len(group); {
		end, width := i, group[i].width
		for end+1 < len(group) && group[end+1].number == group[end].number+1 && group[end+1].fits(width) {
			end++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		if b.WriteString(padded(group[i].number, width)); end > i {
			b.WriteString("-" + padded(group[end].number, width))
		}
		i = end + 1
	}
	b.WriteByte(']')
	return len(group)
}

// Sort orders hosts as Slurm does: by the name before the number, then by the number. It
// returns them without those that are there twice.
func Sort(hosts []string) []string {
	sorted := slices.Clone(hosts)
	slices.SortStableFunc(sorted, func(a, b string) int {
		x, okX := parse(a)
		y, okY := parse(b)
		if !okX || !okY || x.prefix != y.prefix {
			return strings.Compare(a, b)
		}
		return int(min(max(x.number-y.number, -1), 1))
	})
	return slices.Compact(sorted)
}
