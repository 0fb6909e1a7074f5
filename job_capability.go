package roost

import "strings"

// CapabilityServices is the right to have services and alloc sets, in a cell that
// restricts them.
const CapabilityServices = "services"

// devicePrefix begins the names of capabilities over devices, such as "device:gpu".
const devicePrefix = "device:"

// DeviceGPU is the device of jobs that ask for GPUs. Every other device has the name of
// a limit of the cell.
const DeviceGPU = "gpu"

// AnyDeviceCapability stands in lists and messages for the capabilities of all devices.
const AnyDeviceCapability = devicePrefix + "X"

// DeviceCapability names the capability to use a device.
func DeviceCapability(device string) string { return devicePrefix + strings.ToLower(device) }

// CapabilityDevice returns the device that a capability is for.
func CapabilityDevice(capability string) (device string, ok bool) {
	return strings.CutPrefix(capability, devicePrefix)
}
