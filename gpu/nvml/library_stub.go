//go:build !cgo

package nvml

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// Library is an NVML that was opened: without cgo there is none.
type Library struct{}

// Open loads the library at that path, and fails with roost.Unavailable where it cannot
// be.
func Open(path string) (*Library, error) {
	return nil, fmt.Errorf("nvml: %w: this roost was built without cgo and cannot load it", roost.Unavailable)
}

// Devices are those of no machine.
func (l *Library) Devices() ([]gpu.Device, error) { return nil, nil }

// Usage is of no device.
func (l *Library) Usage() ([]gpu.DeviceUsage, error) { return nil, nil }

// Wait waits until the time is over.
func (l *Library) Wait(limit time.Duration) []gpu.XIDEvent {
	time.Sleep(limit)
	return nil
}

// Driver is not known.
func (l *Library) Driver() (driver, cuda string) { return "", "" }

// Close does nothing.
func (l *Library) Close() error { return nil }
