package submit

import "strings"

// word says of what a name is made: of ASCII letters, and of these besides. It is no regular expression because of what compiling those with such lengths
// costs each command that starts.
type word struct {
	first string // that it may begin with
	rest  string // that may follow
	most  int    // bytes
}

const digits = "0123456789"

var (
	jobName       = word{digits, digits + "_.+-", 230}
	groupName     = word{digits + "_", digits + "_.-", 128}
	unixGroup     = word{digits + "_", digits + `_.@\-`, 64} // what groupadd(8) takes before a dollar sign at its end, and a number where a group has no name
	envName       = word{"_", digits + "_", 1 << 20}
	attributeName = word{"_", digits + "_", 128}
)

func (w *word) fits(s string) bool {
	if s == "" || len(s) > w.most {
		return false
	}
	for i := range len(s) {
		also := w.rest
		if i == 0 {
			also = w.first
		}
		if c := s[i]; (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte(also, c) < 0 {
			return false
		}
	}
	return true
}
