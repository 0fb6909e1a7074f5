package linetext

import (
	"regexp"
	"strings"
)

// negativeNumber matches what begins with a minus sign and is no formula.
var negativeNumber = regexp.MustCompile(`^-[0-9]+(\.[0-9]+)?$`)

// QuoteFormula puts an apostrophe before a text of CSV that a spreadsheet could take for
// a formula. One that begins with an apostrophe gets another, so that a reader can tell
// them apart. Negative numbers stay as they are.
func QuoteFormula(text string) string {
	if isFormula(text) {
		return "'" + text
	}
	return text
}

// isFormula reports whether spreadsheets could take a text for a formula. They go by its
// first character; some skip blanks before it.
func isFormula(text string) bool {
	if text == "" {
		return false
	}
	if strings.IndexByte("\t\r\n'", text[0]) >= 0 {
		return true
	}
	for _, r := range strings.TrimLeft(text, " \t\r\n\u00a0") {
		return strings.ContainsRune("=+-@'|%\uff1d\uff0b\uff0d\uff20", r) && !negativeNumber.MatchString(text)
	}
	return false
}
