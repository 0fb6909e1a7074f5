package roost

import "strings"

// MaxDNSLabel is the length of the longest label of a name in the DNS.
const MaxDNSLabel = 63

// IsDNSLabel reports whether a text is a label of letters, digits and inner hyphens. The
// names of services and of their owners are labels of the names of their tasks.
func IsDNSLabel(s string) bool {
	if s == "" || len(s) > MaxDNSLabel || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i] | 0x20
		if s[i] != '-' && (c < 'a' || c > 'z') && (s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return true
}

// NearestDNSLabel returns the label in lower case that is nearest to a text. It is empty
// where the text has neither letters nor digits.
func NearestDNSLabel(s string) string {
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s))
	label = strings.TrimLeft(label, "-")
	return strings.TrimRight(label[:min(len(label), MaxDNSLabel)], "-")
}
