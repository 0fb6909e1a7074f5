package idle

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"
)

// ThermalSource reports whether the machine is so hot that the firmware slows its
// processors down. It is then at the passive trip point of a thermal zone (Linux
// Documentation/driver-api/thermal/sysfs-api.rst). By then its fan is loud enough to
// annoy the owner.
type ThermalSource struct {
	dir string
	hot map[string]bool // zones that have not cooled down since
}

// NewThermal returns the source.
func NewThermal() *ThermalSource {
	return &ThermalSource{dir: "/sys/class/thermal", hot: map[string]bool{}}
}

// Name is the source's name.
func (t *ThermalSource) Name() string { return "heat" }

const (
	thermalInterval = 2 * time.Second
	coolingMargin   = 5000   // in m°C below the trip point, so that tasks do not stop and start all the time
	maxTripPoint    = 150000 // in m°C; a firmware that reports a higher trip point has none
)

// Run checks every two seconds.
func (t *ThermalSource) Run(ctx context.Context, tell func(SourceReading)) {
	runPeriodically(ctx, thermalInterval, func() { tell(t.readThermal()) })
}

func (t *ThermalSource) readThermal() SourceReading {
	s := SourceReading{Name: t.Name()}
	zones, _ := filepath.Glob(filepath.Join(t.dir, "thermal_zone*"))
	known, closest, text := 0, 0, ""
	hot := map[string]bool{}
	for _, zone := range zones {
		trip, ok := tripPoint(zone)
		if !ok || readWord(filepath.Join(zone, "mode")) == "disabled" {
			continue
		}
		now, err := strconv.Atoi(readWord(filepath.Join(zone, "temp")))
		if err != nil { // for example a wireless card that is switched off
			continue
		}
		room := trip - now
		hot[zone] = room <= 0 || t.hot[zone] && room < coolingMargin
		if known++; known == 1 || room < closest {
			closest = room
			text = fmt.Sprintf("%s (%s) is at %d °C of %d °C", filepath.Base(zone),
				readWord(filepath.Join(zone, "type")), now/1000, trip/1000)
		}
		s.Hot = s.Hot || hot[zone]
	}
	t.hot = hot
	if known == 0 {
		s.Text = "this machine has no thermal zone with a trip point that can be read"
		return s
	}
	s.Health, s.Text = Healthy, text
	return s
}

// tripPoint returns the lowest temperature at which a zone requires less work, in
// thousandths of a degree.
func tripPoint(zone string) (lowest int, ok bool) {
	types, _ := filepath.Glob(filepath.Join(zone, "trip_point_*_type"))
	for _, file := range types {
		switch readWord(file) {
		case "passive", "hot", "critical":
		default: // at an active one a fan starts, which is normal
			continue
		}
		n, err := strconv.Atoi(readWord(file[:len(file)-len("type")] + "temp"))
		if err == nil && n > 0 && n < maxTripPoint && (!ok || n < lowest) {
			lowest, ok = n, true
		}
	}
	return lowest, ok
}
