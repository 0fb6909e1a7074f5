//go:build !cgo

package nvml

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// Library is an open NVML, which does not exist without cgo.
type Library struct{}

// Open fails with roost.Unavailable, because this build has no cgo.
func Open(path string) (*Library, error) {
	return nil, fmt.Errorf("nvml: %w: this roost was built without cgo and cannot load it", roost.Unavailable)
}

// Devices returns no devices.
func (l *Library) Devices() ([]gpu.Device, error) { return nil, nil }

// Usage returns no measurements.
func (l *Library) Usage() ([]gpu.DeviceUsage, error) { return nil, nil }

// Wait sleeps for limit.
func (l *Library) Wait(limit time.Duration) []gpu.XIDEvent {
	time.Sleep(limit)
	return nil
}

// Driver returns "" for unknown.
func (l *Library) Driver() (driver, cuda string) { return "", "" }

// Close does nothing.
func (l *Library) Close() error { return nil }
