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

// Capabilities over the secrets of groups: a group is those who have one of them.
const (
	secretUsePrefix = "secrets:"     // jobs may have the secrets of the group
	secretSetPrefix = "set-secrets:" // likewise, and the user may set and remove them
)

// AnySecretUseCapability and AnySecretSetCapability stand in lists and messages for the
// capabilities over the secrets of all groups.
const (
	AnySecretUseCapability = secretUsePrefix + "X"
	AnySecretSetCapability = secretSetPrefix + "X"
)

// SecretUseCapability names the capability to use the secrets of a group.
func SecretUseCapability(group string) string { return secretUsePrefix + group }

// SecretSetCapability names the capability to set and use the secrets of a group.
func SecretSetCapability(group string) string { return secretSetPrefix + group }

// CapabilitySecretGroup returns the group that a capability over secrets is for.
func CapabilitySecretGroup(capability string) (group string, ok bool) {
	if group, ok = strings.CutPrefix(capability, secretUsePrefix); ok {
		return group, true
	}
	return strings.CutPrefix(capability, secretSetPrefix)
}

// CapabilityDevice returns the device that a capability is for.
func CapabilityDevice(capability string) (device string, ok bool) {
	return strings.CutPrefix(capability, devicePrefix)
}
