package enroll

import "github.com/roost-batch/roost/internal/config"

// newDesktop is the startd of somebody's own machine: its owner comes first.
func newDesktop(name, addr string) config.StartdSettings {
	return config.StartdSettings{Name: name, Listen: []string{addr}, Policy: config.OwnerPolicy{Preset: "desktop"}}
}
