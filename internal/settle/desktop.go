package settle

import "github.com/roost-batch/roost/internal/config"

// desktop is the startd of somebody's own machine. It starts nothing: he has not been asked yet.
func desktop(name, addr string) config.Startd {
	return config.Startd{Name: name, Listen: []string{addr}, Start: "false"}
}
