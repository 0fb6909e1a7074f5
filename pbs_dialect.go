package roost

import "fmt"

// PBSDialect is which PBS the PBS commands speak where two that people know differ: what
// options mean that both have, the names of a few attributes, and for how long a job that
// has ended is seen.
type PBSDialect string

// The dialects.
const (
	OpenPBS PBSDialect = "pbs"    // PBS Professional and OpenPBS
	Torque  PBSDialect = "torque" // Torque, and the OpenPBS 2.3 that it came from
)

// ParsePBSDialect reads the name of a dialect; none stands for OpenPBS.
func ParsePBSDialect(text string) (PBSDialect, error) {
	switch d := PBSDialect(text); d {
	case "":
		return OpenPBS, nil
	case OpenPBS, Torque:
		return d, nil
	}
	return "", fmt.Errorf("%w: there is no dialect %q: there are %s and %s", Invalid, text, OpenPBS, Torque)
}
