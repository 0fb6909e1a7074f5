//go:build cgo

package nvml

import (
	"encoding/binary"
	"time"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/roost-batch/roost/gpu"
)

// deviceHealth returns the health of a card by the rules of NVIDIA's "GPU Memory Error
// Management". A card that can remap rows remains usable after an uncorrectable error,
// even while a row waits for the next reset, unless the remapping failed. A card that can
// only retire pages uses the bad page until it is reset. An action that the driver itself
// recommends comes first.
func (l *Library) deviceHealth(handle lib.Device) gpu.DeviceHealth {
	if h := l.recoveryAction(handle); !h.OK {
		return h
	}
	if l.hasFunction("nvmlDeviceGetRemappedRows") {
		if _, _, pending, failed, ret := handle.GetRemappedRows(); ret == lib.SUCCESS {
			switch {
			case failed:
				return gpu.Unhealthy("a bad row of its memory could not be replaced: the card needs to be exchanged")
			case pending:
				return gpu.DeviceHealth{OK: true, Reason: "a bad row of its memory is replaced when it is reset next"}
			}
			return gpu.HealthyDevice()
		}
	}
	if l.hasFunction("nvmlDeviceGetRetiredPagesPendingStatus") {
		if pending, ret := handle.GetRetiredPagesPendingStatus(); ret == lib.SUCCESS && pending == lib.FEATURE_ENABLED {
			return gpu.Unhealthy("a bad page of its memory is in use until the card is reset")
		}
	}
	if n, ret := handle.GetTotalEccErrors(lib.MEMORY_ERROR_TYPE_UNCORRECTED, lib.VOLATILE_ECC); ret == lib.SUCCESS &&
		n > 0 {
		return gpu.Unhealthy("uncorrectable memory errors since it was reset last: reset it")
	}
	return gpu.HealthyDevice()
}

// recoveryAction returns the action that the driver requires before the card can be used
// again. Older drivers report none.
func (l *Library) recoveryAction(handle lib.Device) gpu.DeviceHealth {
	if !l.hasFunction("nvmlDeviceGetFieldValues") {
		return gpu.HealthyDevice()
	}
	asked := []lib.FieldValue{{FieldId: lib.FI_DEV_GET_GPU_RECOVERY_ACTION}}
	if ret := handle.GetFieldValues(asked); ret != lib.SUCCESS || lib.Return(asked[0].NvmlReturn) != lib.SUCCESS {
		return gpu.HealthyDevice()
	}
	switch lib.DeviceGpuRecoveryAction(binary.NativeEndian.Uint32(asked[0].Value[:])) {
	case lib.GPU_RECOVERY_ACTION_NONE:
		return gpu.HealthyDevice()
	case lib.GPU_RECOVERY_ACTION_NODE_REBOOT, lib.GPU_RECOVERY_ACTION_SYSTEM_REBOOT:
		return gpu.Unhealthy("the driver asks for a reboot of the machine")
	}
	return gpu.Unhealthy("the driver asks for a reset of the card")
}

// registerEvents subscribes to the events of a new card.
func (l *Library) registerEvents(c deviceHandle) {
	if l.events == nil || l.registered[c.UUID] {
		return
	}
	l.registered[c.UUID] = true
	types, ret := c.handle.GetSupportedEventTypes()
	if wanted := uint64(lib.EventTypeXidCriticalError|lib.EventTypeDoubleBitEccError) & types; ret == lib.SUCCESS &&
		wanted != 0 {
		c.handle.RegisterEvents(wanted, l.events)
	}
}

// XIDs for conditions that NVML reports by other event types.
const (
	xidDoubleBit = 48
	xidLost      = 79
)

// Wait waits for XID events, at most for limit, and returns them; none is no error. An
// error of a whole card is reported for each of its instances.
func (l *Library) Wait(limit time.Duration) []gpu.XIDEvent {
	if l.events == nil {
		time.Sleep(limit)
		return nil
	}
	start := time.Now()
	data, ret := l.events.Wait(uint32(limit / time.Millisecond))
	if ret != lib.SUCCESS && ret != lib.ERROR_GPU_IS_LOST {
		if ret != lib.ERROR_TIMEOUT {
			time.Sleep(max(limit-time.Since(start), 0)) // otherwise a caller in a loop would spin
		}
		return nil
	}
	if ret == lib.ERROR_GPU_IS_LOST {
		time.Sleep(max(limit-time.Since(start), 0))
		return []gpu.XIDEvent{{XID: xidLost}}
	}
	xid := int(data.EventData)
	if data.EventType == lib.EventTypeDoubleBitEccError {
		xid = xidDoubleBit
	}
	uuid := ""
	if data.Device != nil {
		uuid, _ = data.Device.GetUUID()
	}
	var events []gpu.XIDEvent
	for _, d := range l.devicesOfReport(uuid, data.GpuInstanceId) {
		events = append(events, gpu.XIDEvent{UUID: d.UUID, XID: xid})
	}
	if events == nil {
		events = []gpu.XIDEvent{{UUID: uuid, XID: xid}}
	}
	return events
}
