//go:build cgo

package nvml

import (
	"errors"
	"fmt"
	"sync"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// Library is an open NVML. Its methods may be called from several goroutines, except
// Devices, which must not be called concurrently with itself.
type Library struct {
	api   lib.Interface
	sysfs string // directory of PCI devices

	events      lib.EventSet // nil: the driver reports no events
	registered  map[string]bool
	lastSamples map[string]uint64 // by UUID: time stamp of the last sample of processes

	mu        sync.Mutex
	handles   map[string]deviceHandle // by UUID: devices of the last call of Devices, and lost ones
	functions map[string]bool         // by symbol: whether the driver has the function
}

// deviceHandle is a device with its NVML handle.
type deviceHandle struct {
	gpu.Device
	handle lib.Device
	lost   bool
}

// Open loads the library at a path, or, if the path is "", the one that the driver has
// installed. Without library or driver the error is of kind roost.Unavailable.
//
// A process has one NVML: the binding's functions are bound to the first library that is
// loaded, so another path in the same process has no effect.
func Open(path string) (*Library, error) {
	var options []lib.LibraryOption
	if path != "" {
		options = append(options, lib.WithLibraryPath(path))
	}
	return openLibrary(lib.New(options...))
}

func openLibrary(api lib.Interface) (*Library, error) {
	switch ret := api.Init(); ret {
	case lib.SUCCESS:
	case lib.ERROR_LIBRARY_NOT_FOUND:
		return nil, fmt.Errorf("nvml: %w: the library is not installed", roost.Unavailable)
	case lib.ERROR_DRIVER_NOT_LOADED:
		return nil, fmt.Errorf("nvml: %w: the driver is not loaded", roost.Unavailable)
	default:
		return nil, fmt.Errorf("nvml: %w: %w", roost.Unavailable, errorText(ret))
	}
	l := &Library{
		api: api, sysfs: "/sys/bus/pci/devices", registered: map[string]bool{}, lastSamples: map[string]uint64{},
		handles: map[string]deviceHandle{}, functions: map[string]bool{},
	}
	if set, ret := api.EventSetCreate(); ret == lib.SUCCESS {
		l.events = set
	}
	return l, nil
}

// errorText returns an error with the text of a return code.
func errorText(ret lib.Return) error { return errors.New(ret.Error()) }

// hasFunction reports whether the driver has a function. Calling one that it does not
// have ends the process.
func (l *Library) hasFunction(symbol string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	there, known := l.functions[symbol]
	if !known {
		there = l.api.Extensions().LookupSymbol(symbol) == nil
		l.functions[symbol] = there
	}
	return there
}

// Driver returns the version of the driver and the newest CUDA version that it supports.
// Examples are "550.54.15" and "12.4"; "" means unknown.
func (l *Library) Driver() (driver, cuda string) {
	if v, ret := l.api.SystemGetDriverVersion(); ret == lib.SUCCESS {
		driver = v
	}
	if l.hasFunction("nvmlSystemGetCudaDriverVersion") {
		if v, ret := l.api.SystemGetCudaDriverVersion(); ret == lib.SUCCESS {
			cuda = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
		}
	}
	return driver, cuda
}

// Close closes the library. No other call may be in progress.
func (l *Library) Close() error {
	if l.events != nil {
		l.events.Free()
	}
	if ret := l.api.Shutdown(); ret != lib.SUCCESS {
		return fmt.Errorf("nvml: close: %w", errorText(ret))
	}
	return nil
}
