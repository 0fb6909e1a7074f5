package enroll

import "github.com/roost-batch/roost/internal/config"

// newDesktop returns the settings of the startd of a desktop, whose owner comes first.
func newDesktop(name, addr string) config.StartdSettings {
	return config.StartdSettings{Name: name, Listen: []string{addr}, Policy: config.OwnerPolicy{Preset: "desktop"}}
}
