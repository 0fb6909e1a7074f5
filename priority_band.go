package roost

import "fmt"

// PriorityBand is a priority band (Borg §2.5). Bands decide before fair share: a task of
// a higher band may preempt one of a strictly lower band, and prod never preempts prod.
type PriorityBand uint8

// The bands, from low to high. ProductionBand and MonitoringBand together are called
// prod.
const (
	FreeBand       PriorityBand = iota // what the other bands leave, without quota
	BatchBand                          // the ordinary band of scientists' work
	ProductionBand                     // services, and work with deadlines
	MonitoringBand                     // services that monitor the others
)

var bandNames = [...]string{FreeBand: "free", BatchBand: "batch", ProductionBand: "production",
	MonitoringBand: "monitoring"}

func (b PriorityBand) String() string {
	if int(b) < len(bandNames) {
		return bandNames[b]
	}
	return fmt.Sprintf("band(%d)", uint8(b))
}

// IsProd reports whether b is one of the two bands that never preempt each other.
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

// BandNames lists the bands from low to high, for messages and shell completions.
func BandNames() []string { return append([]string(nil), bandNames[:]...) }

// The bounds of a job's priority, which orders one user's own jobs within a band (XCU
// qsub -p).
const (
	MinPriority = -1024
	MaxPriority = 1023
)
