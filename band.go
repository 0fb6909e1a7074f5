package roost

import "fmt"

// Band is a priority band (Borg §2.5). Bands decide before fair share does: a task of a higher band may displace
// one of a strictly lower band, and production never displaces production.
type Band uint8

// The bands, from low to high. Production and Monitoring together are called prod.
const (
	Free       Band = iota // whatever is left over, without quota
	Batch                  // the ordinary band of a scientist's work
	Production             // services and deadlines
	Monitoring             // what watches over the rest
)

var bandNames = [...]string{Free: "free", Batch: "batch", Production: "production", Monitoring: "monitoring"}

func (b Band) String() string {
	if int(b) < len(bandNames) {
		return bandNames[b]
	}
	return fmt.Sprintf("band(%d)", uint8(b))
}

// Prod reports whether b is one of the two bands that are never displaced by each other.
func (b Band) Prod() bool { return b >= Production }

// ParseBand reads the name of a band.
func ParseBand(s string) (Band, error) {
	for b, name := range bandNames {
		if s == name {
			return Band(b), nil
		}
	}
	return Batch, fmt.Errorf("%q is not a band: use free, batch, production or monitoring", s)
}

// BandNames lists the bands from low to high, for messages and completions.
func BandNames() []string { return append([]string(nil), bandNames[:]...) }

// The bounds of a job's priority, which orders the jobs of one user inside a band (XCU qsub -p).
const (
	MinPriority = -1024
	MaxPriority = 1023
)
