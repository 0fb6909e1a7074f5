package idle

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/kernfs"
)

// PowerSource tells whether the machine runs on its battery (Linux
// Documentation/ABI/testing/sysfs-class-power).
type PowerSource struct{ dir string }

// NewPower returns the source.
func NewPower() *PowerSource { return &PowerSource{dir: "/sys/class/power_supply"} }

// Name is the source's name.
func (p *PowerSource) Name() string { return "power" }

// powerInterval is how often batteries and supplies are asked. Some answer through a slow
// controller, and a cell lasts for longer than that.
const powerInterval = 3 * time.Second

// Run looks every few seconds.
func (p *PowerSource) Run(ctx context.Context, tell func(SourceReading)) {
	runPeriodically(ctx, powerInterval, func() { tell(p.readPower()) })
}

// readPower applies the rule of ConditionACPower= (systemd.unit(5)): a supply that is
// plugged in settles it; where none is known, a battery that is drained does. Batteries
// of mice and headsets (scope "Device") are no business of the machine.
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

// readWord is what a file of sysfs says, in one line; empty if it says nothing.
func readWord(file string) string {
	text, _ := kernfs.ReadFile(file)
	return strings.TrimSpace(string(text))
}
