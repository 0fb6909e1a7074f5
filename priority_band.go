package roost

import "fmt"

// PriorityBand is a priority band (Borg §2.5). Bands decide before fair share does: a
// task of a higher band may displace one of a strictly lower band, and production never
// displaces production.
type PriorityBand uint8

// The bands, from low to high. Production and MonitoringBand together are called prod.
const (
	FreeBand       PriorityBand = iota // whatever is left over, without quota
	BatchBand                          // the ordinary band of a scientist's work
	ProductionBand                     // services and deadlines
	MonitoringBand                     // what watches over the rest
)

var bandNames = [...]string{FreeBand: "free", BatchBand: "batch", ProductionBand: "production",
	MonitoringBand: "monitoring"}

func (b PriorityBand) String() string {
	if int(b) < len(bandNames) {
		return bandNames[b]
	}
	return fmt.Sprintf("band(%d)", uint8(b))
}

// IsProd reports whether b is one of the two bands that are never displaced by each
// other.
func (b PriorityBand) IsProd() bool { return b >= ProductionBand }

// ParsePriorityBand reads the name of a band.
func ParsePriorityBand(s string) (PriorityBand, error) {
	for b, name := range bandNames {
		if s == name {
			return PriorityBand(b), nil
		}
	}
	return BatchBand, fmt.Errorf("%q is not a band: use free, batch, production or monitoring", s)
}

// BandNames lists the bands from low to high, for messages and completions.
func BandNames() []string { return append([]string(nil), bandNames[:]...) }

// The bounds of a job's priority, which orders the jobs of one user inside a band (XCU
// qsub -p).
const (
	MinPriority = -1024
	MaxPriority = 1023
)
