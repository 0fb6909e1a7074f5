package idle

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/kernfs"
)

// Power tells whether the machine runs on its battery (Linux Documentation/ABI/testing/sysfs-class-power).
type Power struct{ dir string }

// NewPower returns the source.
func NewPower() *Power { return &Power{dir: "/sys/class/power_supply"} }

// Name is the source's name.
func (p *Power) Name() string { return "power" }

// lookAtPower is how often batteries and supplies are asked. Some answer through a slow controller, and a cell lasts for longer than that.
const lookAtPower = 3 * time.Second

// Run looks every few seconds.
func (p *Power) Run(ctx context.Context, tell func(Sight)) {
	repeat(ctx, lookAtPower, func() { tell(p.look()) })
}

// look applies the rule of ConditionACPower= (systemd.unit(5)): a supply that is plugged in settles it; where none is known, a battery that is drained does. Batteries of mice and
// headsets (scope "Device") are no business of the machine.
func (p *Power) look() Sight {
	s := Sight{Name: p.Name()}
	supplies, _ := filepath.Glob(filepath.Join(p.dir, "*", "type"))
	plugged, drained, batteries := "", "", 0
	for _, file := range supplies {
		dir := filepath.Dir(file)
		switch word(file) {
		case "":
		case "Battery":
			if word(filepath.Join(dir, "scope")) == "Device" || word(filepath.Join(dir, "present")) == "0" {
				continue
			}
			batteries++
			if word(filepath.Join(dir, "status")) == "Discharging" {
				drained = filepath.Base(dir)
			}
		default: // Mains, USB, USB_PD, Wireless, UPS …
			if n := word(filepath.Join(dir, "online")); n != "" && n != "0" {
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
		s.OnBattery, s.Text = true, fmt.Sprintf("%s is being drained (%s %%)", drained, word(filepath.Join(p.dir, drained, "capacity")))
	default:
		s.Text = "no battery is being drained"
	}
	s.Health = Well
	return s
}

// word is what a file of sysfs says, in one line; empty if it says nothing.
func word(file string) string {
	text, _ := kernfs.Read(file)
	return strings.TrimSpace(string(text))
}
