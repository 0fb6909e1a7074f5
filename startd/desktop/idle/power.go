package idle

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/kernfs"
)

// PowerSource reports whether the machine runs on battery (Linux
// Documentation/ABI/testing/sysfs-class-power).
type PowerSource struct{ dir string }

// NewPower returns the source.
func NewPower() *PowerSource { return &PowerSource{dir: "/sys/class/power_supply"} }

// Name is the source's name.
func (p *PowerSource) Name() string { return "power" }

// powerInterval is the interval of reading batteries and supplies. Some answer through a
// slow controller, and a battery lasts longer than that.
const powerInterval = 3 * time.Second

// Run checks every few seconds.
func (p *PowerSource) Run(ctx context.Context, tell func(SourceReading)) {
	runPeriodically(ctx, powerInterval, func() { tell(p.readPower()) })
}

// readPower applies the rule of ConditionACPower= (systemd.unit(5)). A supply that is
// plugged in means mains; without any known supply, a discharging battery means battery.
// Batteries of mice and headsets (scope "Device") do not count.
func (p *PowerSource) readPower() SourceReading {
	s := SourceReading{Name: p.Name()}
	supplies, _ := filepath.Glob(filepath.Join(p.dir, "*", "type"))
	plugged, drained, batteries := "", "", 0
	for _, file := range supplies {
		dir := filepath.Dir(file)
		switch readWord(file) {
		case "":
		case "Battery":
			if readWord(filepath.Join(dir, "scope")) == "Device" || readWord(filepath.Join(dir, "present")) == "0" {
				continue
			}
			batteries++
			if readWord(filepath.Join(dir, "status")) == "Discharging" {
				drained = filepath.Base(dir)
			}
		default: // Mains, USB, USB_PD, Wireless, UPS …
			if n := readWord(filepath.Join(dir, "online")); n != "" && n != "0" {
				plugged = filepath.Base(dir)
			}
		}
	}
	switch {
	case batteries == 0:
		s.Text = "this machine has no battery"
		return s
	case plugged != "":
		s.Text = plugged + " is plugged in"
	case drained != "":
		s.OnBattery, s.Text = true, fmt.Sprintf("%s is being drained (%s %%)", drained,
			readWord(filepath.Join(p.dir, drained, "capacity")))
	default:
		s.Text = "no battery is being drained"
	}
	s.Health = Healthy
	return s
}

// readWord returns the contents of a sysfs file as one line, or "" if it cannot be read.
func readWord(file string) string {
	text, _ := kernfs.ReadFile(file)
	return strings.TrimSpace(string(text))
}
