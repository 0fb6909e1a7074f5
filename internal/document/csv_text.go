package document

import (
	"regexp"
	"strings"
)

// negativeNumber matches what begins with a minus sign and is no formula.
var negativeNumber = regexp.MustCompile(`^-[0-9]+(\.[0-9]+)?$`)

// CSVText makes a text harmless that a spreadsheet would take for a formula: it gets a
// leading apostrophe. Negative numbers stay as they are.
func CSVText(s string) string {
	if s == "" || !strings.ContainsRune("=+-@\t\r", rune(s[0])) || negativeNumber.MatchString(s) {
		return s
	}
	return "'" + s
}
