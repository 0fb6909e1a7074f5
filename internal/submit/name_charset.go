package submit

import "strings"

// nameCharset describes the valid names of a kind: ASCII letters, and the other
// characters listed. It is no regular expression, because compiling one with such lengths
// would slow the start of each command.
type nameCharset struct {
	firstChars string // other characters that may be first
	otherChars string // other characters that may follow
	maxBytes   int    // longest name in bytes
}

const digits = "0123456789"

var (
	jobName   = nameCharset{digits, digits + "_.+-", 230}
	groupName = nameCharset{digits + "_", digits + "_.-", 128}
	// what groupadd(8) accepts except a final dollar sign, and a number for a group
	// without a name
	unixGroup     = nameCharset{digits + "_", digits + `_.@\-`, 64}
	envName       = nameCharset{"_", digits + "_", 1 << 20}
	attributeName = nameCharset{"_", digits + "_", 128}
)

func (w *nameCharset) matches(s string) bool {
	if s == "" || len(s) > w.maxBytes {
		return false
	}
	for i := range len(s) {
		also := w.otherChars
		if i == 0 {
			also = w.firstChars
		}
		if c := s[i]; (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte(also, c) < 0 {
			return false
		}
	}
	return true
}
