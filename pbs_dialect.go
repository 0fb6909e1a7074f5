package roost

import "fmt"

// PBSDialect selects the PBS whose rules the PBS commands follow. The dialects differ in
// the meaning of some options, in the names of a few attributes, and in how long ended
// jobs are shown.
type PBSDialect string

// The dialects.
const (
	OpenPBS PBSDialect = "pbs"    // PBS Professional and OpenPBS
	Torque  PBSDialect = "torque" // Torque, and OpenPBS 2.3, from which it derives
)

// ParsePBSDialect reads the name of a dialect; empty means OpenPBS.
func ParsePBSDialect(text string) (PBSDialect, error) {
	switch d := PBSDialect(text); d {
	case "":
		return OpenPBS, nil
	case OpenPBS, Torque:
		return d, nil
	}
	return "", fmt.Errorf("%w: there is no dialect %q: there are %s and %s", Invalid, text, OpenPBS, Torque)
}
