package submit

import "strings"

// nameCharset says of what a name is made: of ASCII letters, and of these besides. It is
// no regular expression because of what compiling those with such lengths costs each
// command that starts.
type nameCharset struct {
	firstChars string // that it may begin with
	otherChars string // that may follow
	maxBytes   int    // bytes
}

const digits = "0123456789"

var (
	jobName   = nameCharset{digits, digits + "_.+-", 230}
	groupName = nameCharset{digits + "_", digits + "_.-", 128}
	// what groupadd(8) takes before a dollar sign at its end, and a number where a group
	// has no name
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
