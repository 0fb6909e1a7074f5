package cron

import (
	"fmt"
	"time"

	// The zones of the program, for hosts without a database of their own: the members of
	// a replicated queue have to know the zones of all its jobs.
	_ "time/tzdata"

	"github.com/roost-batch/roost"
)

// LoadZone returns a zone of the IANA database: the host's, or where it lacks the zone
// that of the program. An empty name is UTC.
func LoadZone(name string) (*time.Location, error) {
	if name == "Local" { // another one on another host
		return nil, fmt.Errorf("zone %q: %w: name it, as in Europe/Berlin", name, roost.Invalid)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("zone %q: %w: the time zone database has no such zone; the names are like "+
			"Europe/Berlin and UTC", name, roost.Invalid)
	}
	return zone, nil
}
