package settle

import "github.com/roost-batch/roost/internal/config"

// desktop is the startd of somebody's own machine: its owner comes first.
func desktop(name, addr string) config.Startd {
	return config.Startd{Name: name, Listen: []string{addr}, Policy: config.Policy{Preset: "desktop"}}
}
