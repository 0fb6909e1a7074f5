package roost

import "fmt"

// Dialect is which PBS the PBS commands speak where two that people know differ: what options mean that both have, the names of a few attributes, and for how
// long a job that has ended is seen.
type Dialect string

// The dialects.
const (
	OpenPBS Dialect = "pbs"    // PBS Professional and OpenPBS
	Torque  Dialect = "torque" // Torque, and the OpenPBS 2.3 that it came from
)

// ParseDialect reads the name of a dialect; none stands for OpenPBS.
func ParseDialect(text string) (Dialect, error) {
	switch d := Dialect(text); d {
	case "":
		return OpenPBS, nil
	case OpenPBS, Torque:
		return d, nil
	}
	return "", fmt.Errorf("%w: there is no dialect %q: there are %s and %s", Invalid, text, OpenPBS, Torque)
}
